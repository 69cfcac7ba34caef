# greet [NAME]: says hello to somebody, or to the world.
greet() {
    echo "Hello, ${1:-world}!"
}
