import { pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import {
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  createZstdCompress,
  gzip,
  type InputType,
  zstdCompress,
} from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "#operations/refusal.ts";

/** Above this quality, Brotli takes several times as long and saves a few percent. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** A stream is as long as an export. The fastest levels take a third of the time, and make it a tenth longer. */
/**
 * In the order of preference. A stream is flushed after each chunk, so that no row waits for later rows. It is as long as an export:
 * the fastest levels take a quarter to a half of the time, and make it at most a quarter longer.
 */
const ENCODERS = {
  zstd: {
    encode: promisify<InputType, Buffer>(zstdCompress),
    open: () =>
      createZstdCompress({
        params: { [constants.ZSTD_c_compressionLevel]: 1 },
        flush: constants.ZSTD_e_flush,
      }),
  },
  br: {
    encode: (body: InputType) => promisify(brotliCompress)(body, BROTLI),
    open: () =>
      createBrotliCompress({
        params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
        flush: constants.BROTLI_OPERATION_FLUSH,
      }),
  },
  gzip: {
    encode: promisify<InputType, Buffer>(gzip),
    open: () => createGzip({ level: constants.Z_BEST_SPEED, flush: constants.Z_SYNC_FLUSH }),
  },
} as const;

type Encoding = keyof typeof ENCODERS;

const ENCODINGS = Object.keys(ENCODERS) as Encoding[];

/** A smaller body fits into one packet with its headers. */
const LEAST_BYTES = 1_024;

const COMPRESSIBLE = /^text\/(?!event-stream)|[/+](?:json|xml|javascript|x-ndjson)\b/;

/**
 * Routes whose answers can hold a secret beside input of the request. The length of a compressed answer says whether the
 * two are alike (BREACH).
 */
const WITH_SECRET = /^\/(?:session|api\/v1\/keys)(?:\/|$)/;

/**
 * Compresses answers as the request's Accept-Encoding allows, and refuses a request that accepts no encoding at all. Must
 * be added after every hook that reads the answer's body, such as the one that makes ETags. The ETags are weak, so they
 * are the same in each encoding.
 */
export function addCompression(app: FastifyInstance): void {
  app.addHook("onRequest", async ({ headers }) => {
    if (chooseEncoding(headers["accept-encoding"]) !== null) return;
    const detail = `The header Accept-Encoding accepts neither ${ENCODINGS.join(", ")} nor identity.`;
    throw new Refusal(406, { detail });
  });
  app.addHook("onSend", compress);
}

async function compress(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  addVary(reply);
  const isBody = typeof payload === "string" || Buffer.isBuffer(payload);
  if (!isBody && !(payload instanceof Readable)) return payload;
  if (!isCompressible(reply) || WITH_SECRET.test(request.routeOptions.url ?? "")) return payload;
  const isTiny = isBody && Buffer.byteLength(payload) < LEAST_BYTES;
  const encoding = chooseEncoding(request.headers["accept-encoding"], isTiny);
  if (encoding === null || encoding === "identity") return payload;
  void reply.header("content-encoding", encoding).removeHeader("content-length");
  // An error of either stream ends both, and Fastify reports it.
  return isBody ? encode(payload, encoding) : pipeline(payload, ENCODERS[encoding].open(), () => undefined);
}

/** Bodies that a route keeps and sends again, such as that of `/docs`. */
const encoded = new WeakMap<Buffer, Partial<Record<Encoding, Promise<Buffer>>>>();

function encode(body: string | Buffer, encoding: Encoding): Promise<Buffer> {
  if (typeof body === "string") return ENCODERS[encoding].encode(body);
  const known = encoded.get(body) ?? {};
  encoded.set(body, known);
  return (known[encoding] ??= ENCODERS[encoding].encode(body));
}

function isCompressible(reply: FastifyReply): boolean {
  const read = (name: string) => String(reply.getHeader(name) ?? "");
  // A part of an answer is counted in the bytes of the uncompressed one.
  const isFixed = ["content-encoding", "content-range", "accept-ranges"].some((name) =>
    reply.hasHeader(name),
  );
  return (
    !isFixed && COMPRESSIBLE.test(read("content-type")) && !/\bno-transform\b/.test(read("cache-control"))
  );
}

function addVary(reply: FastifyReply): void {
  const vary = String(reply.getHeader("vary") ?? "");
  if (!/accept-encoding|\*/i.test(vary))
    void reply.header("vary", vary === "" ? "accept-encoding" : `${vary}, accept-encoding`);
}

/**
 * Returns the encoding with the highest weight (RFC 9110, 12.5.3); null if none is accepted. Without the header it is
 * identity, because many a client without it cannot decode anything. `prefersIdentity`: take identity wherever it is accepted.
 */
export function chooseEncoding(
  header: string | undefined,
  prefersIdentity = false,
): Encoding | "identity" | null {
  if (header === undefined) return "identity";
  const entries = header
    .toLowerCase()
    .split(",")
    .map((entry) => entry.split(";").map((part) => part.trim()));
  const weights = new Map(
    entries.map(([name = "", ...parameters]) => {
      const [, q = "1"] =
        /^q=(\d(?:\.\d*)?)$/.exec(parameters.find((one) => one.startsWith("q=")) ?? "") ?? [];
      return [name, Number(q)];
    }),
  );
  // An encoding that is not named is refused, but identity is then only the last choice.
  const weigh = (name: string) =>
    weights.get(name) ?? weights.get("*") ?? (name === "identity" ? Number.MIN_VALUE : 0);
  if (prefersIdentity && weigh("identity") > 0) return "identity";
  const [best] = ([...ENCODINGS, "identity"] as const).toSorted((one, other) => weigh(other) - weigh(one));
  return best !== undefined && weigh(best) > 0 ? best : null;
}
