. ./src/greet.sh

expect() {
    if [ "$2" != "$3" ]; then
        echo "FAILED: $1: expected '$2', got '$3'" >&2
        exit 1
    fi
    echo "ok: $1"
}

expect "a name is greeted" "Hello, Ada!" "$(greet Ada)"
expect "nobody is the world" "Hello, world!" "$(greet)"
