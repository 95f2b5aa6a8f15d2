import { createHash } from "node:crypto";
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import S3rver from "@20minutes/s3rver";
import { afterAll, beforeEach } from "vitest";
import { createSecret } from "#lib/secret.ts";
import { type Bucket, openBucket } from "#store/bucket/bucket.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

const NAME = "waf-archive";
/** The one account of s3rver. */
const KEY = "S3RVER";

export interface S3Server {
  readonly url: string;
  /** The settings of a service that uses the bucket. */
  readonly environment: Readonly<Record<string, string>>;
  /** The bucket's objects on disk: `<key>._S3rver_object`. */
  readonly folder: string;
  /** Method and key of each request so far. */
  readonly requests: string[];
  /** While it returns a status, the server answers with it; "cut" ends the connection in the middle of the answer. */
  refuse: (request: IncomingMessage) => number | "cut" | null;
  /** Whether the server keeps checksums, as S3 does. s3rver does not. */
  keepsChecksums: boolean;
  bucket(prefix: string, settings?: { readonly secret?: string; readonly name?: string }): Bucket;
  close(): Promise<void>;
}

/** Starts a server for all tests of a file. Each of them finds it without faults. */
export async function shareS3Server(): Promise<S3Server> {
  const server = await startS3Server();
  afterAll(() => server.close());
  beforeEach(() => {
    server.refuse = () => null;
    server.keepsChecksums = true;
  });
  return server;
}

/**
 * An S3-compatible server with an empty bucket: s3rver, which verifies signatures, behind what it lacks: it refuses a
 * body that is not what its checksum says, and `If-None-Match: *` where there is an object.
 */
export async function startS3Server(): Promise<S3Server> {
  const directory = makeTemporaryFolder("s3");
  const inner = new S3rver({
    silent: true,
    address: "127.0.0.1",
    port: 0,
    vhostBuckets: false,
    directory,
    configureBuckets: [{ name: NAME, configs: [] }],
  });
  const { port } = await inner.run();
  const checksums = new Map<string, string>();

  const answer = (response: ServerResponse, status: number, code: string) =>
    response
      .writeHead(status, { "content-type": "application/xml" })
      .end(status === 404 ? "" : `<Error><Code>${code}</Code></Error>`);

  function pass(
    request: IncomingMessage,
    body: Buffer | null,
    response: ServerResponse,
    isCut: boolean,
  ): void {
    const { method, url = "", headers } = request;
    const onward = forward({ port, host: "127.0.0.1", method, path: url, headers }, (reply) => {
      const checksum = server.keepsChecksums ? checksums.get(url) : undefined;
      if (method === "PUT" && reply.statusCode === 200)
        checksums.set(url, String(headers["x-amz-checksum-sha256"]));
      response.writeHead(reply.statusCode ?? 500, {
        ...reply.headers,
        ...(checksum !== undefined && headers["x-amz-checksum-mode"] === "ENABLED"
          ? { "x-amz-checksum-sha256": checksum }
          : {}),
      });
      if (isCut)
        reply.once("data", (chunk: Buffer) =>
          response.write(chunk.subarray(0, 10), () => response.destroy()),
        );
      else reply.pipe(response);
    });
    onward.end(body ?? undefined);
  }

  function exists(url: string): Promise<boolean> {
    const [, bucket = "", ...key] = decodeURIComponent(url).split("/");
    return inner.store.existsObject(bucket, key.join("/"));
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    server.requests.push(`${method} ${decodeURIComponent(url).replace(`/${NAME}`, "")}`);
    const refused = server.refuse(request);
    if (typeof refused === "number") return void answer(response, refused, "AccessDenied");
    if (method === "PUT") {
      const checksum = createHash("sha256").update(body).digest("base64");
      if (headers["x-amz-checksum-sha256"] !== checksum) return void answer(response, 400, "BadDigest");
      if (headers["if-none-match"] === "*" && (await exists(url)))
        return void answer(response, 412, "PreconditionFailed");
    }
    pass(request, body, response, refused === "cut");
  }

  const outer = createServer(
    (request, response) => void handle(request, response).catch(() => response.destroy()),
  );
  await new Promise<void>((resolve) => outer.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(outer.address() as AddressInfo).port}`;
  const server: S3Server = {
    url,
    environment: {
      LONGWATCH_ARCHIVE_URL: `s3://${NAME}/kept/logs`,
      AWS_ENDPOINT_URL: url,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: KEY,
    },
    folder: path.join(directory, NAME),
    requests: [],
    refuse: () => null,
    keepsChecksums: true,
    bucket: (prefix, { secret = KEY, name = NAME } = {}) =>
      openBucket({
        endpoint: url,
        region: "us-east-1",
        name,
        prefix,
        accessKeyId: createSecret(KEY),
        secretAccessKey: createSecret(secret),
        sessionToken: null,
      }),
    async close() {
      outer.closeAllConnections();
      await new Promise((resolve) => outer.close(resolve));
      await inner.close();
    },
  };
  return server;
}
