# The image of sandboxes: docker build -f deploy/kubernetes/sandbox.Dockerfile -t registry.example.com/gatehouse-sandbox:0.1.0 .
# Add what the code of your users needs. Node 20.11 or newer, a shell, coreutils, findutils, tar and gzip must stay.
FROM node:22-bookworm-slim AS build
# The Node.js of the packages links to it, and the slim images do not have it.
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

FROM node:22-bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates curl git python3 && rm -rf /var/lib/apt/lists/*
# The agent of interns. Other agents go to /opt/agent-NAME (docs/guides/interns.md).
COPY --from=build /build/dist/agent /opt/gatehouse-agent
# For programs that ignore the variables: the system's bundle is the sandbox's own.
RUN ln -sf /run/gatehouse/bundle.pem /etc/ssl/certs/ca-certificates.crt
USER 1000:1000
