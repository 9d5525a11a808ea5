# The image: Node 24 LTS on Debian slim, not root, no compiler, no embedded Postgres (production demands DATABASE_URL).

FROM node:24-bookworm-slim AS build
WORKDIR /app
# Dependencies first: this layer is built again only when the lock changes.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --loglevel=error
COPY tsconfig.json tsconfig.build.json nest-cli.json .swcrc ./
COPY openapi.json ./
COPY scripts ./scripts
COPY src ./src
COPY migrations ./migrations
COPY console ./console
# A page of the console.
COPY docs/reference/errors.md ./docs/reference/errors.md
# Builds the gateway, and the console in console/dist.
RUN npm run build
# Optional dependencies are platform binaries: the embedded Postgres and build tools.
RUN npm prune --omit=dev --omit=optional --loglevel=error \
 # For modules that are added to node_modules.
 && ln -s .. node_modules/postern

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/var/lib/postern
WORKDIR /app
# The journal outlives the container. Named volumes take over this owner and mode when they are first used.
RUN install -d -o node -g node -m 0700 /var/lib/postern \
 && printf '#!/bin/sh\nexec node /app/dist/src/cli/start.js "$@"\n' > /usr/local/bin/postern \
 && chmod 0755 /usr/local/bin/postern
# Owned by root: the process that serves cannot change what it runs.
COPY --from=build /app/package.json ./package.json
COPY CHANGELOG.md ./CHANGELOG.md
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/console/dist ./console/dist
USER node
VOLUME /var/lib/postern
EXPOSE 8080
# Alive, not ready: a container whose Postgres is away must not be restarted, it recovers by itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/health/live').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=32", "--v8-pool-size=1", "dist/src/start.js"]
