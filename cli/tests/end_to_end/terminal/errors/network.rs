//! Proxies, certificates and models that cannot be used.

use super::{case, table, write};

#[test]
fn proxies_and_certificates_that_cannot_be_used() {
    let args = &["--sandbox", "off"];
    table(
        "errors_network",
        &[
            case("a proxy that is no address", args).env(&[("HTTPS_PROXY", "::")]),
            case("a proxy that does not speak http", args)
                .env(&[("HTTPS_PROXY", "socks5://me:secret@127.0.0.1:9")]),
            case("certificates that are not there", args).env(&[("SSL_CERT_FILE", "nowhere.pem")]),
            case("an address that is none", args).env(&[("GOOGLE_GEMINI_BASE_URL", "127.0.0.1:9")]),
            case(
                "an address of the other dialect that is none",
                &["--model", "openai/test"],
            )
            .env(&[
                ("OPENAI_BASE_URL", "nobody"),
                ("OPENAI_API_KEY", "sk-of-no-use-at-all-00"),
            ]),
            case("certificates that are none", args).env(&[("SSL_CERT_FILE", "build.sh")]),
        ],
    );
}

#[test]
fn models_that_are_no_service() {
    table(
        "errors_models",
        &[
            case(
                "a script that is not there",
                &["--model", "scripted/nowhere.txt"],
            ),
            case(
                "a script with a bad entry",
                &["--model", "scripted/replies.json"],
            )
            .after(&write("replies.json", b"{\"replies\": [{\"text\": \n")),
            case(
                "a script with an error that is none",
                &["--model", "scripted/replies.json"],
            )
            .after(&write(
                "replies.json",
                b"{\"replies\": [{\"error\": \"tired\"}]}\n",
            )),
        ],
    );
}
