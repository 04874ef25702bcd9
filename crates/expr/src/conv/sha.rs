//! SHA-1 and SHA-2 after FIPS 180-4.
//!
//! For keys and fingerprints in rules, not for secrets: written for size, checked against the
//! standard's examples.

const K256: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

const K512: [u64; 80] = [
    0x428a_2f98_d728_ae22,
    0x7137_4491_23ef_65cd,
    0xb5c0_fbcf_ec4d_3b2f,
    0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538,
    0x59f1_11f1_b605_d019,
    0x923f_82a4_af19_4f9b,
    0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242,
    0x1283_5b01_4570_6fbe,
    0x2431_85be_4ee4_b28c,
    0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f,
    0x80de_b1fe_3b16_96b1,
    0x9bdc_06a7_25c7_1235,
    0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2,
    0xefbe_4786_384f_25e3,
    0x0fc1_9dc6_8b8c_d5b5,
    0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275,
    0x4a74_84aa_6ea6_e483,
    0x5cb0_a9dc_bd41_fbd4,
    0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab,
    0xa831_c66d_2db4_3210,
    0xb003_27c8_98fb_213f,
    0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2,
    0xd5a7_9147_930a_a725,
    0x06ca_6351_e003_826f,
    0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc,
    0x2e1b_2138_5c26_c926,
    0x4d2c_6dfc_5ac4_2aed,
    0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de,
    0x766a_0abb_3c77_b2a8,
    0x81c2_c92e_47ed_aee6,
    0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364,
    0xa81a_664b_bc42_3001,
    0xc24b_8b70_d0f8_9791,
    0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218,
    0xd699_0624_5565_a910,
    0xf40e_3585_5771_202a,
    0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8,
    0x1e37_6c08_5141_ab53,
    0x2748_774c_df8e_eb99,
    0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63,
    0x4ed8_aa4a_e341_8acb,
    0x5b9c_ca4f_7763_e373,
    0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc,
    0x78a5_636f_4317_2f60,
    0x84c8_7814_a1f0_ab72,
    0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28,
    0xa450_6ceb_de82_bde9,
    0xbef9_a3f7_b2c6_7915,
    0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c,
    0xd186_b8c7_21c0_c207,
    0xeada_7dd6_cde0_eb1e,
    0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba,
    0x0a63_7dc5_a2c8_98a6,
    0x113f_9804_bef9_0dae,
    0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84,
    0x32ca_ab7b_40c7_2493,
    0x3c9e_be0a_15c9_bebc,
    0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6,
    0x597f_299c_fc65_7e2a,
    0x5fcb_6fab_3ad6_faec,
    0x6c44_198c_4a47_5817,
];

/// The message in blocks of `N` bytes: padded by a one bit, zeros and its length in bits.
fn each_block<const N: usize>(bytes: &[u8], mut consume: impl FnMut(&[u8; N])) {
    let mut whole = bytes.chunks_exact(N);
    let mut block = [0; N];
    for chunk in &mut whole {
        block.copy_from_slice(chunk);
        consume(&block);
    }
    let rest = whole.remainder();
    block = [0; N];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] = 0x80;
    // The length takes an eighth of a block.
    if rest.len() + 1 + N / 8 > N {
        consume(&block);
        block = [0; N];
    }
    let bits = (bytes.len() as u64).wrapping_mul(8);
    block[N - 8..].copy_from_slice(&bits.to_be_bytes());
    consume(&block);
}

fn words32(block: &[u8; 64]) -> impl Iterator<Item = u32> + '_ {
    block.chunks_exact(4).map(|four| {
        four.iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte))
    })
}

fn words64(block: &[u8; 128]) -> impl Iterator<Item = u64> + '_ {
    block.chunks_exact(8).map(|eight| {
        eight
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    })
}

/// SHA-1.
pub(crate) fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    each_block::<64>(bytes, |block| {
        let mut w = [0; 80];
        w.iter_mut()
            .zip(words32(block))
            .for_each(|(slot, word)| *slot = word);
        for t in 16..80 {
            w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (t, word) in w.iter().enumerate() {
            let (f, k) = match t {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = a
                .rotate_left(5)
                .wrapping_add(f)
                .wrapping_add(e)
                .wrapping_add(k);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum.wrapping_add(*word));
        }
        for (slot, word) in state.iter_mut().zip([a, b, c, d, e]) {
            *slot = slot.wrapping_add(word);
        }
    });
    let mut out = [0; 20];
    out.chunks_exact_mut(4)
        .zip(state)
        .for_each(|(four, word)| four.copy_from_slice(&word.to_be_bytes()));
    out
}

macro_rules! sha2 {
    ($name:ident, $word:ty, $block:expr, $rounds:expr, $words:ident, $k:ident,
     $s0:expr, $s1:expr, $b0:expr, $b1:expr) => {
        fn $name(bytes: &[u8], mut state: [$word; 8]) -> [$word; 8] {
            each_block::<$block>(bytes, |block| {
                let mut w: [$word; $rounds] = [0; $rounds];
                w.iter_mut()
                    .zip($words(block))
                    .for_each(|(slot, word)| *slot = word);
                let turn = |x: $word, n: [u32; 3]| {
                    x.rotate_right(n[0]) ^ x.rotate_right(n[1]) ^ x.rotate_right(n[2])
                };
                let slide = |x: $word, n: [u32; 3]| {
                    x.rotate_right(n[0]) ^ x.rotate_right(n[1]) ^ (x >> n[2])
                };
                for t in 16..$rounds {
                    w[t] = slide(w[t - 2], $s1)
                        .wrapping_add(w[t - 7])
                        .wrapping_add(slide(w[t - 15], $s0))
                        .wrapping_add(w[t - 16]);
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
                for t in 0..$rounds {
                    let t1 = h
                        .wrapping_add(turn(e, $b1))
                        .wrapping_add((e & f) ^ (!e & g))
                        .wrapping_add($k[t])
                        .wrapping_add(w[t]);
                    let t2 = turn(a, $b0).wrapping_add((a & b) ^ (a & c) ^ (b & c));
                    (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
                    (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
                }
                for (slot, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *slot = slot.wrapping_add(word);
                }
            });
            state
        }
    };
}

sha2!(
    rounds32,
    u32,
    64,
    64,
    words32,
    K256,
    [7, 18, 3],
    [17, 19, 10],
    [2, 13, 22],
    [6, 11, 25]
);
sha2!(
    rounds64,
    u64,
    128,
    80,
    words64,
    K512,
    [1, 8, 7],
    [19, 61, 6],
    [28, 34, 39],
    [14, 18, 41]
);

fn cut32<const N: usize>(state: [u32; 8]) -> [u8; N] {
    let mut out = [0; N];
    out.chunks_exact_mut(4)
        .zip(state)
        .for_each(|(four, word)| four.copy_from_slice(&word.to_be_bytes()));
    out
}

fn cut64<const N: usize>(state: [u64; 8]) -> [u8; N] {
    let mut out = [0; N];
    out.chunks_exact_mut(8)
        .zip(state)
        .for_each(|(eight, word)| eight.copy_from_slice(&word.to_be_bytes()));
    out
}

/// SHA-224.
pub(crate) fn sha224(bytes: &[u8]) -> [u8; 28] {
    const START: [u32; 8] = [
        0xc105_9ed8,
        0x367c_d507,
        0x3070_dd17,
        0xf70e_5939,
        0xffc0_0b31,
        0x6858_1511,
        0x64f9_8fa7,
        0xbefa_4fa4,
    ];
    cut32(rounds32(bytes, START))
}

/// SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    const START: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    cut32(rounds32(bytes, START))
}

/// SHA-384.
pub(crate) fn sha384(bytes: &[u8]) -> [u8; 48] {
    const START: [u64; 8] = [
        0xcbbb_9d5d_c105_9ed8,
        0x629a_292a_367c_d507,
        0x9159_015a_3070_dd17,
        0x152f_ecd8_f70e_5939,
        0x6733_2667_ffc0_0b31,
        0x8eb4_4a87_6858_1511,
        0xdb0c_2e0d_64f9_8fa7,
        0x47b5_481d_befa_4fa4,
    ];
    cut64(rounds64(bytes, START))
}

/// SHA-512.
pub(crate) fn sha512(bytes: &[u8]) -> [u8; 64] {
    const START: [u64; 8] = [
        0x6a09_e667_f3bc_c908,
        0xbb67_ae85_84ca_a73b,
        0x3c6e_f372_fe94_f82b,
        0xa54f_f53a_5f1d_36f1,
        0x510e_527f_ade6_82d1,
        0x9b05_688c_2b3e_6c1f,
        0x1f83_d9ab_fb41_bd6b,
        0x5be0_cd19_137e_2179,
    ];
    cut64(rounds64(bytes, START))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn examples_of_the_standard() {
        assert_eq!(
            hex(&sha1(b"abc")),
            "a9993e364706816aba3e25717850c26c9cd0d89d"
        );
        assert_eq!(
            hex(&sha224(b"abc")),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
        assert_eq!(
            hex(&sha256(b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert!(
            hex(&sha384(b"abc")).starts_with("cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163")
        );
        assert!(
            hex(&sha512(b"abc")).starts_with("ddaf35a193617abacc417349ae20413112e6fa4e89a97ea2")
        );
    }

    #[test]
    fn padding_that_needs_a_block_of_its_own() {
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(&sha1(long)), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(
            hex(&sha256(long)),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
