//! Certificates over a session, of a configuration without TLS: the words are those HAProxy 3.2
//! answers. What bind lines serve is in `tests/tests/tls_commands.rs`.

use super::{limits, worker};

#[test]
fn a_name_is_made_room_for_and_forgotten() {
    let server = worker("certificates-new", limits(), 1);
    assert_eq!(
        server.ask("show ssl cert; new ssl cert; new ssl cert x; new ssl cert x; show ssl cert\n"),
        "\n'new ssl cert' expects a filename\n\nNew empty certificate store 'x'!\n\n\
         Certificate 'x' already exists!\n\n# filename\nx\n\n"
    );
    assert_eq!(
        server.ask("show ssl cert x; dump ssl cert x; commit ssl cert x; abort ssl cert x\n"),
        "Filename: x\nStatus: Empty\nOCSP Response Key: \n\n\n\
         No ongoing transaction! !\nCan't commit x!\n\nNo ongoing transaction!\n\n"
    );
    assert_eq!(
        server.ask("set ssl cert x <<\ngarbage\n\n"),
        "unable to load certificate from file 'x': no start line.\n\
         Can't load the payload\nCan't update x!\n\n"
    );
    assert_eq!(
        server.ask("del ssl cert x; del ssl cert x; show ssl cert\n"),
        "Certificate 'x' deleted!\n\n\
         Can't remove the certificate: certificate 'x' doesn't exist!\n\n\n"
    );
}

#[test]
fn files_of_authorities_are_told_by_their_state() {
    let server = worker("certificates-authorities", limits(), 1);
    assert_eq!(
        server.ask("new ssl ca-file x; show ssl ca-file; show ssl ca-file x; del ssl ca-file x\n"),
        "New CA file created 'x'!\n\n# filename\nx - 0 certificate(s)\n\n\n\
         CA file 'x' deleted!\n\n"
    );
    assert_eq!(
        server.ask("new ssl crl-file x; show ssl crl-file x; show ssl crl-file x:0\n"),
        "New CRL file created 'x'!\n\nFilename: x\nStatus: Empty\n\n\
         wrong CRL index after colons in 'x:0'!\n\n"
    );
    assert_eq!(
        server.ask("show ssl sni; show tls-keys; show ssl ocsp-response; show ssl crt-list\n"),
        "# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n\n\
         # id (file)\n\n\n\n"
    );
}
