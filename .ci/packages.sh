# Sourced by the scripts beside it: may we install Debian packages, and how.

say() { printf '%s\n' "$*" >&2; }

# install_debian PACKAGE...: 0 when all of them are installed afterwards.
install_debian() {
    command -v apt-get > /dev/null || return 1
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        { command -v sudo > /dev/null && sudo -n true 2> /dev/null; } || return 1
        sudo=(sudo -n)
    fi
    say "Installing $* with apt-get ..."
    "${sudo[@]}" apt-get update -qq >&2 || return 1
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" > /dev/null || return 1
}
