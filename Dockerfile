# docker build --tag federated-suite . && docker run --rm -it federated-suite
FROM python:3.11-slim-bookworm AS base
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --shell /bin/bash --uid 1000 suite \
    && install --directory --owner=suite /suite
ENV PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1
USER 1000
WORKDIR /suite

# The dev container leaves this out: there the checkout is mounted.
FROM base
COPY --chown=suite . .
RUN make setup
CMD ["make", "train"]
