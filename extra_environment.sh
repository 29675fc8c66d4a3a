# Sourced by the scripts that make an environment beside .venv. They set, before:
#   target        what to type again after a failure, as in "make $target"
#   environment   its folder
#   lock          what pip installs into it
#   disk          what it takes
stamp=$environment/setup_done
log=$environment/setup.log
python=$environment/bin/python

fail() {
    echo "$target: $1" >&2
    exit "${2:-1}"
}

# One line for what stopped pip, from its log.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|Connect(ion|Timeout)Error|ReadTimeoutError|ProxyError' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about $disk are needed"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of $lock"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

# Installs exactly the packages of the lock $1.
install() {
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --no-input install --no-deps --require-hashes \
        -r "$1" >>"$log" 2>&1
}

fail_to_install() {
    fail "$(explain); fix that and run make $target again (whole log: $log)"
}

# Two of these at once would disturb each other.
wait_for_others() {
    exec 9<"$lock"
    ! command -v flock >/dev/null || flock 9
}

# Makes the environment anew from the lock, small enough for that.
make_anew() {
    rm -rf "$environment" 2>/dev/null
    mkdir "$environment" 2>/dev/null || fail "cannot write into $(pwd)"
    echo "setting up $environment: $(grep -c '==' "$lock") packages, $disk on disk (log: $log)"
    .venv/bin/python -m venv "$environment" >"$log" 2>&1 || fail "cannot make $environment; whole log: $log"
    install "$lock" || fail_to_install
}

# Makes the environment, unless that is done. "set_up on_top": its packages come before those of .venv, which stays as it
# is, and it is made anew when these change.
set_up() {
    wait_for_others
    base=${1:+requirements.lock}
    digest=$({ cat "$lock" $base && pwd; } | cksum)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ]; then
        make_anew
        [ -z "$base" ] || add_packages_of_venv
        echo "$digest" >"$stamp"
    fi
    exec 9<&-
}

add_packages_of_venv() {
    packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || fail "no .venv"
    echo "import site; site.addsitedir('$packages')" >"$environment/lib/python3.11/site-packages/of_the_project.pth" ||
        fail "cannot write into $environment"
}

# One line for what stopped npm, from its log.
explain_npm() {
    if grep -qE 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -q 'ENOSPC' "$log"; then
        echo "the disk is full; about $disk are needed"
    elif grep -q 'EINTEGRITY' "$log"; then
        echo "a downloaded package is not the one of $lock"
    else
        grep -E 'npm (error|ERR!)' "$log" | head -n 1 | grep . || tail -n 1 "$log"
    fi
}

# Installs exactly the packages of $lock, which lies in the folder $1 with its package.json, unless that is done.
# Packages may not run programs of their own.
install_by_npm() {
    digest=$({ cat "$lock" && pwd; } | cksum)
    [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ] || return 0
    command -v npm >/dev/null || fail "npm is missing; install Node.js 20 or newer (Debian, Ubuntu: apt install npm)"
    rm -rf "$environment" 2>/dev/null
    mkdir "$environment" 2>/dev/null || fail "cannot write into $(pwd)"
    echo "setting up $environment by npm: $(grep -c '"integrity"' "$lock") packages, $disk on disk (log: $log)"
    cp "$1/package.json" "$lock" "$environment"
    npm ci --prefix "$environment" --ignore-scripts --no-audit --no-fund >"$log" 2>&1 ||
        fail "$(explain_npm); fix that and run make $target again (whole log: $log)"
    echo "$digest" >"$stamp"
}
