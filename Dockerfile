# Built from the sources; runs as an ordinary user on the Node.js that comes with the package. Everything that must
# survive is below /data, or in the PostgreSQL that DATABASE_URL names.
FROM node:22-bookworm-slim AS build
# The Node.js of the package links to it, and the slim images do not have it.
RUN apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY package.json package-lock.json ./
COPY build/link-runtime.js ./build/
RUN npm ci --no-audit --no-fund
COPY openapi.json ./
COPY build ./build
COPY src ./src
COPY console ./console
RUN npm run build
RUN npm prune --omit=dev --no-audit --no-fund && node build/link-runtime.js && rm -r node_modules/node-linux-*/include node_modules/node-linux-*/share

FROM debian:bookworm-slim
RUN useradd --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin gatehouse && install -d -o gatehouse -g gatehouse -m 0700 /data
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap ca-certificates libatomic1 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY openapi.json LICENSE ./
ENV NODE_ENV=production GATEHOUSE_HOST=0.0.0.0 GATEHOUSE_PORT=8484 GATEHOUSE_DATA_DIR=/data
USER gatehouse
VOLUME /data
EXPOSE 8484
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["node_modules/.bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.GATEHOUSE_PORT}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node_modules/.bin/node", "dist/main.js"]
CMD ["serve"]
