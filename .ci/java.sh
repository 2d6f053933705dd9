#!/usr/bin/env bash
# java.sh: print the JAVA_HOME of a Java that Spark 4 runs on (17 or newer); install one where that is allowed.
set -euo pipefail
. "$(dirname "$0")/packages.sh"
least=17

# version_of JAVA: its major version, 0 where it is none. Up to Java 8 the versions read 1.8.
version_of() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p;' | head -n 1 | grep . || echo 0
}

# home_of JAVA: the directory that holds bin/java, behind all links.
home_of() {
    local path
    path=$(readlink -f "$1" 2> /dev/null || echo "$1")
    dirname "$(dirname "$path")"
}

find_java() {
    local java
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java || true)" /usr/lib/jvm/*/bin/java \
        /opt/homebrew/opt/openjdk*/bin/java; do
        if [ -x "$java" ] && [ "$(version_of "$java")" -ge "$least" ]; then
            home_of "$java"
            return
        fi
    done
    /usr/libexec/java_home -F -v "$least+" 2> /dev/null
}

if ! find_java; then
    # Newer releases of Debian have dropped 17 and bring 21 as the default.
    if install_debian openjdk-17-jre-headless || install_debian default-jre-headless; then
        find_java && exit
    fi
    say "Spark needs Java $least or newer, and there is none (JAVA_HOME, PATH and the usual places were looked at)."
    say "  Debian/Ubuntu: sudo apt-get install openjdk-17-jre-headless    (or default-jre-headless)"
    say "  Fedora:        sudo dnf install java-21-openjdk-headless"
    say "  macOS:         brew install openjdk@17"
    exit 1
fi
