# A tag can be moved to another image; NODE_IMAGE=node@sha256:... pins one (docs/deploy.md).
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No package needs its install script here.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force

FROM ${NODE_IMAGE} AS console
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY src ./src
COPY db ./db
COPY jobs ./jobs
RUN node src/build-console.mjs

FROM ${NODE_IMAGE}
# Node as process 1 would reap no orphans and ignore signals it has no handler for.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=node --group=node --mode=1777 /var/lib/longwatch \
    # A new volume takes over owner and mode of the folder it is mounted on.
    && install --directory --owner=node --group=node --mode=0700 /var/lib/longwatch-archive \
    && install --directory --owner=node --group=node --mode=0700 /var/lib/longwatch-key
# `longwatch status` in the container is what `npm run -s longwatch -- status` is in a checkout.
RUN printf '#!/bin/sh\nexec node /app/src/main.ts "$@"\n' > /usr/local/bin/longwatch && chmod 755 /usr/local/bin/longwatch
WORKDIR /app
COPY LICENSE README.md package.json package-lock.json ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY migrations ./migrations
COPY db ./db
COPY jobs ./jobs
COPY src ./src
COPY --from=console /app/dist ./dist

# Inside a container only the published ports decide who may connect.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    LONGWATCH_HOST=0.0.0.0 \
    LONGWATCH_PORT=8080 \
    LONGWATCH_DATA_DIR=/var/lib/longwatch
USER node
# The only folder that is written to: the rest of the file system may be read-only.
VOLUME /var/lib/longwatch
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 CMD ["node", "/app/src/app/check-health.ts"]
# The options, and the two for malloc above, are those of src/app/launch.json: half the memory.
ENTRYPOINT ["tini", "--", "node", "--max-semi-space-size=16", "--heap-growing-percent=100", "/app/src/main.ts"]
CMD ["start"]
