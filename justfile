# One-line recipes; `.ci/run` runs all that has to pass.

test:
    cargo test --workspace

lint:
    cargo fmt --all --check && cargo clippy --workspace --all-targets -- -D warnings

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

example name="flights":
    cargo run --release -p {{name}}

bench name="save":
    cargo run --release -p anabranch-benches -- {{name}}

# This library beside every other one; see benches/peers/README.md
peers *options:
    benches/peers/run.py {{options}}

# The long forms of the tests under load
long:
    ANABRANCH_LONG=1 cargo test --workspace

ci:
    bash .ci/run
