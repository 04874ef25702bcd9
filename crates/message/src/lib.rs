//! HTTP without a version: heads, fields, body parts and the checks every version must pass.
