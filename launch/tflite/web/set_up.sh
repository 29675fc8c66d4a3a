#!/bin/sh
# Puts LiteRT.js into .web/, exactly as package-lock.json says, unless that is done already: what
# `launch.export --web_page` packs into a page. `make web` calls it. npm checks each package's digest.
set -u
cd "$(dirname "$0")/../../.." || exit 1

target=web
environment=.web
folder=launch/tflite/web
lock=$folder/package-lock.json
disk="0.1 GB"
. ./extra_environment.sh

wait_for_others
install_by_npm "$folder"
