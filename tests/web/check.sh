#!/bin/sh
# Exports runs with `--web_page` and drives the pages in headless Chromium and Firefox: what they answer must be what
# the report says, training files must train as in TensorFlow's interpreter, nothing may leave the pages, and their
# console must stay empty. Likewise the pages of `launch.compare`: that of kept runs, whose intervals must be those of
# the reports, and that of the run; `report.html`; and of a live run, whose server is killed meanwhile, the organiser's
# page, and that of a participant, which is used by keyboard. There people bring examples of their own, too; its readers
# of files are compared with Python's. `make test-web` calls it after `make web`; what it drives the browsers with is
# installed into .web-test. The argument is a finished run; without it eight are trained: one for each kind of model, on
# digits (Adam), HAR, CIFAR-10, the building, a table, a rhyme and reviews, and one with momentum. Without FL_DATA_DIR,
# HAR and CIFAR-10 are drawn at random. CHROMIUM=<path> and FIREFOX=<path> name the browsers, SHOTS=<folder> keeps
# screenshots, TEXT=<text> is what the page of a text model completes.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-web
environment=.web-test
lock=tests/web/package-lock.json
disk="0.1 GB"
. ./extra_environment.sh

find_browser() {
    for candidate in "$@"; do
        [ -z "$candidate" ] || ! command -v "$candidate" || return 0
    done
    return 1
}

CHROMIUM=$(find_browser "${CHROMIUM:-}" chromium chromium-browser google-chrome) ||
    fail "no Chromium found; install it (Debian: apt install chromium) or name it: CHROMIUM=<path>"
leave_out_firefox() {
    echo "Firefox is left out: $1 or name it: FIREFOX=<path>"
    FIREFOX=
}

FIREFOX=$(find_browser "${FIREFOX:-}" firefox-esr firefox) ||
    leave_out_firefox "none found; install it (Debian: apt install firefox-esr)"
# Playwright asks for what responses hold (network.addDataCollector), which older ones do not know.
version=$([ -z "$FIREFOX" ] || "$FIREFOX" --version 2>/dev/null | sed -n 's/.*Firefox \([0-9][0-9.]*\).*/\1/p')
[ -z "$FIREFOX" ] || [ "${version%%.*}" -ge 143 ] 2>/dev/null ||
    leave_out_firefox "Playwright drives 143 or newer, and this is ${version:-of no version}; install one"
wait_for_others
install_by_npm tests/web
exec 9<&-

folder=$(mktemp -d) || fail "cannot make a temporary folder"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
failed=

# Runs a function with its arguments once for each browser.
in_browsers() {
    for BROWSER_KIND in chromium ${FIREFOX:+firefox}; do
        BROWSER=$CHROMIUM
        [ "$BROWSER_KIND" = chromium ] || BROWSER=$FIREFOX
        export BROWSER BROWSER_KIND
        echo "$BROWSER_KIND:"
        "$@" || failed=yes
    done
}

shots_of() {
    [ -z "${SHOTS:-}" ] || echo "$SHOTS/$BROWSER_KIND/$(basename "$1")"
}

drive_run() {
    node tests/web/drive_page.mjs "$1/export/page.html" "$folder/answers.json" "$(shots_of "$1")" &&
        .venv/bin/python tests/web/check_page.py "$1/export" "$folder/answers.json"
}

drive_text() {
    node tests/web/drive_text.mjs "$1/export/page.html" "$folder/answers.json" "$2" "$(shots_of "$1")" &&
        .venv/bin/python tests/web/check_text.py "$1/export" "$folder/answers.json"
}

drive_words() {
    node tests/web/drive_words.mjs "$1/export/page.html" "$folder/answers.json" "$2" "$(shots_of "$1")" &&
        .venv/bin/python tests/web/check_page.py "$1/export" "$folder/answers.json"
}

drive_report() {
    node tests/web/drive_report.mjs "$1/report.html" "$(shots_of "$1_report")"
}

drive_comparison() {
    name=$1
    shift
    node tests/web/drive_compare.mjs "$folder/$name.html" "$folder/answers.json" "$(shots_of "$name")" &&
        .venv/bin/python tests/web/check_compare.py "$folder/answers.json" "$@"
}

# The client of Python beside the page has an environment of its own.
visit_live_page() {
    (environment=.venv-live lock=requirements-live.lock disk="0.2 GB" && . ./extra_environment.sh && set_up) || exit
    BROWSER_KIND=chromium
    SHOTS=$(shots_of live) BROWSER=$CHROMIUM .venv/bin/python tests/live/browsers.py --visit || failed=yes
}

watch_run() {
    .venv/bin/python tests/live/watch.py "$(shots_of organiser)"
}

bring_own() {
    .venv/bin/python tests/live/own_examples.py "$(shots_of own_examples)"
}

# Exports the run $1 with the flags that follow, and checks its page.
check_run() {
    run=$1
    shift
    .venv/bin/python -m launch.export --run_dir="$run" --web_page --save_test_set "$@" || exit
    in_browsers drive_run "$run"
}

# The same of the run $1 of a text model, whose page completes the line $2.
check_text() {
    .venv/bin/python -m launch.export --run_dir="$1" --web_page --save_test_set || exit
    in_browsers drive_text "$@"
}

# The same of the run $1 on a text column, in whose page the text $2 is typed.
check_words() {
    .venv/bin/python -m launch.export --run_dir="$1" --web_page --save_test_set || exit
    in_browsers drive_words "$@"
}

# Checks the page of launch.compare of what the flags name, under the name $1.
check_comparison() {
    name=$1
    shift
    .venv/bin/python -m launch.compare --output="$folder/$name.html" "$@" || exit
    in_browsers drive_comparison "$name" "$@"
}

train() {
    .venv/bin/python -m launch.train "$@" || exit
}

.venv/bin/python tests/live/read_alike.py || failed=yes
check_comparison compare --archive=docs/results/fedsikd.zip
if [ -n "${1:-}" ]; then
    if grep -q '"vocabulary": ' "$1/config.json"; then
        check_words "$1" "${TEXT:-the }"
    elif grep -q '"takes_tokens": true' "$1/config.json"; then
        check_text "$1" "${TEXT:-the }"
    else
        check_run "$1"
    fi
    check_comparison compare_one --runs="$1"
    in_browsers drive_report "$1"
else
    drawn=
    [ -n "${FL_DATA_DIR:-}" ] || { drawn=--smoke; echo "FL_DATA_DIR is not set: HAR and CIFAR-10 are drawn at random"; }
    floats=float32,float16,dynamic
    train --algo=fedsikd --quantize=qat --rounds=3 --run_dir="$folder/digits"
    check_comparison compare_one --runs="$folder/digits"
    check_run "$folder/digits" --formats=$floats,int8,qat_int8 --on_device_training=full
    train --algo=fedavg --model=perceptron --optimizer=sgd --learning_rate=0.05 --momentum=0.9 --weight_decay=0.001 \
        --proximal_weight=0.1 --rounds=2 --run_dir="$folder/momentum"
    check_run "$folder/momentum" --formats=float32 --on_device_training=full
    train --algo=fedavg --dataset=har --num_clients=5 --rounds=2 --steps=5 $drawn --run_dir="$folder/har"
    check_run "$folder/har" --formats=$floats,int8 --on_device_training=head
    train --algo=fedcd --dataset=cifar10 --partition=hierarchical --clients_per_archetype=1 --rounds=2 \
        --train_per_client=100 --validation_per_client=50 --test_per_client=50 --model=image_cnn10 --width=0.25 \
        --milestones=1 --cohort_size=5 $drawn --run_dir="$folder/cifar10"
    check_run "$folder/cifar10" --formats=$floats,int8
    train --algo=amfl_p --dataset=building --building_num_sensors=5 --rounds=2 --run_dir="$folder/building"
    clients=$(sed -n '2,3s/,.*//p' "$folder/building/clients.csv" | paste -sd, -)
    check_run "$folder/building" --formats=$floats,int8 --model="global,$clients" --on_device_training=head
    .venv/bin/python tests/web/write_table.py "$folder/table.csv" || exit
    train --algo=fedavg --data="$folder/table.csv" --task=regression --standardize=federated --partition=iid \
        --num_clients=2 --rounds=2 --run_dir="$folder/table"
    check_run "$folder/table" --formats=float32,int8
    .venv/bin/python tests/web/write_text.py "$folder/rhyme.npz" || exit
    train --algo=fedavg --dataset=npz --npz="$folder/rhyme.npz" --task=next_token --partition=iid --num_clients=2 \
        --model=char_gru --rounds=2 --epochs=3 --optimizer=adam --learning_rate=0.005 \
        --run_dir="$folder/rhyme"
    check_text "$folder/rhyme" "one two b"
    PYTHONPATH=tests/shared .venv/bin/python -c \
        "import made_reviews as made; print(made.format_reviews(made.make_reviews()), end='')" >"$folder/reviews.csv" || exit
    train --algo=fedavg --data="$folder/reviews.csv" --text_column=review --rounds=8 --run_dir="$folder/reviews"
    check_words "$folder/reviews" "My lamp is wonderful"
    for run in digits cifar10 building rhyme; do in_browsers drive_report "$folder/$run"; done
    in_browsers watch_run
    in_browsers bring_own
    visit_live_page
fi
[ -z "$failed" ] || fail "a page differs from its report, or misbehaves"
echo "all pages answer as their reports"
