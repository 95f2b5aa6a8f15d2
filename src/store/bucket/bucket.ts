/** A small client for the S3 API of a bucket. */
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import { Agent, type Dispatcher, request } from "undici";
import { messageOf, toError } from "#lib/errors.ts";
import type { FileHash } from "#lib/files.ts";
import { readBody } from "#lib/http.ts";
import type { Secret } from "#lib/secret.ts";
import { type ListedFile, StorageError } from "#model/archive-storage.ts";

/** The longest wait for a connection, for the head of an answer, and for its next bytes. */
const SILENCE_MS = 30_000;
const MAX_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 200;
/** A page of a list has 1,000 names. */
const MAX_TEXT_BYTES = 8 * 1_024 * 1_024;

interface BucketSettings {
  /** An http or https URL; the bucket's name follows in the path. */
  readonly endpoint: string;
  readonly region: string;
  readonly name: string;
  /** Without slashes at its ends; '' for the whole bucket. */
  readonly prefix: string;
  readonly accessKeyId: Secret;
  readonly secretAccessKey: Secret;
  readonly sessionToken: Secret | null;
}

/** A local file, or a text. */
type Content = FileHash & ({ readonly local: string } | { readonly text: string });

/** The objects under a prefix of an S3-compatible bucket. Paths are relative to the prefix. */
export interface Bucket {
  /** Name of the bucket for messages. */
  readonly place: string;
  /** Stores an object. The server compares it with its SHA-256. Returns false if `isNew` is wanted and there is one. */
  put(
    path: string,
    content: Content,
    options: { isNew: boolean; signal?: AbortSignal | undefined },
  ): Promise<boolean>;
  /** Returns the content, null if there is no such object. The caller reads or destroys it. */
  get(path: string, signal?: AbortSignal): Promise<Readable | null>;
  /** Returns the size, and the SHA-256 in hex if the server keeps it; null if there is no such object. */
  head(path: string, signal?: AbortSignal): Promise<{ bytes: number; sha256: string | null } | null>;
  list(folder: string): Promise<ListedFile[]>;
  remove(path: string): Promise<void>;
}

interface Call {
  readonly method: "GET" | "PUT" | "HEAD" | "DELETE";
  /** Null: the bucket itself. */
  readonly path: string | null;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Readable | string;
  readonly signal?: AbortSignal | undefined;
  /** Statuses beside 2xx that are an answer. */
  readonly accepts: readonly number[];
}

/** The right that a key needs for a method. */
const RIGHTS = {
  // Without the second one, a missing object is refused like a forbidden one.
  GET: "s3:GetObject and s3:ListBucket",
  HEAD: "s3:GetObject and s3:ListBucket",
  PUT: "s3:PutObject",
  DELETE: "s3:DeleteObject",
} as const;

export function openBucket(settings: BucketSettings): Bucket {
  const { endpoint, region, name, prefix } = settings;
  const place = describeBucket(settings);
  const dispatcher = new Agent({
    connect: { timeout: SILENCE_MS },
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
  });
  const keyOf = (path: string) => [prefix, path].filter(Boolean).join("/");

  function locate({ path, query = {} }: Call): URL {
    const segments = [name, ...(path === null ? [] : keyOf(path).split("/"))];
    const url = new URL(`${endpoint.replace(/\/+$/, "")}/${segments.map(encodeURIComponent).join("/")}`);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    return url;
  }

  async function attempt(call: Call): Promise<Dispatcher.ResponseData> {
    const { url, headers } = await new AwsV4Signer({
      method: call.method,
      url: locate(call).href,
      headers: { "x-amz-content-sha256": "UNSIGNED-PAYLOAD", ...call.headers },
      service: "s3",
      region,
      accessKeyId: settings.accessKeyId.reveal(),
      secretAccessKey: settings.secretAccessKey.reveal(),
      ...(settings.sessionToken === null ? {} : { sessionToken: settings.sessionToken.reveal() }),
    }).sign();
    return request(url, {
      method: call.method,
      headers: Object.fromEntries(headers),
      body: call.body?.() ?? null,
      dispatcher,
      signal: call.signal ?? null,
    });
  }

  /** Tries again what may succeed: a broken connection, a busy server. */
  async function send(call: Call): Promise<Dispatcher.ResponseData> {
    for (let tried = 1; ; tried++) {
      const pause = FIRST_PAUSE_MS * 4 ** (tried - 1) * (0.5 + Math.random());
      const reply = await attempt(call).catch((thrown: unknown) => toError(thrown));
      call.signal?.throwIfAborted();
      if (!(reply instanceof Error)) {
        const { statusCode } = reply;
        if (statusCode < 300 || call.accepts.includes(statusCode)) return reply;
        const text = (await readBody(reply.body, MAX_TEXT_BYTES, true).catch(() => "")).toString();
        const isPassing = statusCode >= 500 || statusCode === 429 || statusCode === 409;
        if (!isPassing || tried === MAX_ATTEMPTS)
          throw new StorageError(explainRefusal(call, statusCode, text));
      } else if (tried === MAX_ATTEMPTS) {
        const why = messageOf(reply);
        throw new StorageError(`the bucket ${place} cannot be reached at ${endpoint}: ${why}`, {
          cause: reply,
        });
      }
      await delay(pause, undefined, { signal: call.signal });
    }
  }

  /** Repeats the server's error word only: its message may quote headers. */
  function explainRefusal({ method, path }: Call, status: number, text: string): string {
    const word = /<Code>([A-Za-z.]{1,60})<\/Code>/.exec(text)?.[1];
    const right = path === null ? "s3:ListBucket" : RIGHTS[method];
    const next =
      status === 403
        ? `; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (${region}), the clock, and that the key may do ${right}`
        : word === "NoSuchBucket"
          ? "; create the bucket, or correct LONGWATCH_ARCHIVE_URL"
          : [301, 307, 400].includes(status)
            ? `; check AWS_REGION (${region}) and AWS_ENDPOINT_URL (${endpoint})`
            : "";
    return `the bucket ${place} refused ${method} with ${status}${word === undefined ? "" : ` ${word}`}${next}`;
  }

  const readText = async ({ body }: Dispatcher.ResponseData) =>
    (await readBody(body, MAX_TEXT_BYTES)).toString();

  return {
    place,
    async put(path, content, { isNew, signal }) {
      const reply = await send({
        method: "PUT",
        path,
        headers: {
          "content-length": String(content.bytes),
          "x-amz-content-sha256": content.sha256,
          "x-amz-checksum-sha256": Buffer.from(content.sha256, "hex").toString("base64"),
          ...(isNew ? { "if-none-match": "*" } : {}),
        },
        body: () => ("local" in content ? createReadStream(content.local) : content.text),
        signal,
        accepts: isNew ? [412] : [],
      });
      await reply.body.dump();
      return reply.statusCode !== 412;
    },
    async get(path, signal) {
      const reply = await send({ method: "GET", path, signal, accepts: [404] });
      if (reply.statusCode !== 404) return reply.body;
      assertBucket(await readText(reply));
      return null;
    },
    async head(path, signal) {
      const headers = { "x-amz-checksum-mode": "ENABLED" };
      const reply = await send({ method: "HEAD", path, headers, signal, accepts: [404] });
      await reply.body.dump();
      if (reply.statusCode === 404) return null;
      const { "content-length": length, "x-amz-checksum-sha256": checksum } = reply.headers;
      // The checksum of an object that was copied in parts is not that of its content.
      const isWhole = typeof checksum === "string" && !checksum.includes("-");
      return {
        bytes: Number(length),
        sha256: isWhole ? Buffer.from(checksum, "base64").toString("hex") : null,
      };
    },
    async list(folder) {
      const files: ListedFile[] = [];
      const skipped = keyOf("/").length - 1;
      // The first version of the call: its pages continue after a name, which every server understands.
      for (let marker: string | null = ""; marker !== null; ) {
        const query = {
          "encoding-type": "url",
          prefix: keyOf(`${folder}/`),
          ...(marker === "" ? {} : { marker }),
        };
        const page = readListPage(
          await readText(await send({ method: "GET", path: null, query, accepts: [] })),
        );
        files.push(...page.files.map((file) => ({ ...file, path: file.path.slice(skipped) })));
        marker = page.isLast ? null : (page.files.at(-1)?.path ?? null);
      }
      return files;
    },
    async remove(path) {
      await (await send({ method: "DELETE", path, accepts: [404] })).body.dump();
    },
  };

  /** A missing object and a missing bucket have the same status. */
  function assertBucket(text: string): void {
    if (text.includes("<Code>NoSuchBucket</Code>"))
      throw new StorageError(explainRefusal({ method: "GET", path: "", accepts: [] }, 404, text));
  }
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** Reads one page of a list of objects (ListObjects). Paths are whole keys. */
function readListPage(xml: string): {
  readonly files: readonly ListedFile[];
  readonly isLast: boolean;
} {
  const isEncoded = read(xml, "EncodingType") === "url";
  const files = Array.from(xml.matchAll(/<Contents>(.*?)<\/Contents>/gs), ([, entry = ""]) => {
    const key = read(entry, "Key") ?? "";
    return {
      path: isEncoded ? decodeURIComponent(key.replaceAll("+", " ")) : key,
      bytes: Number(read(entry, "Size")),
      modifiedAt: Date.parse(read(entry, "LastModified") ?? ""),
    };
  });
  return { files, isLast: read(xml, "IsTruncated") !== "true" };
}

function read(xml: string, name: string): string | null {
  const [, text] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? [];
  return text?.replaceAll(/&(lt|gt|amp|quot|apos);/g, (_, entity: string) => ENTITIES[entity] ?? "") ?? null;
}

/** Returns the address of a bucket's prefix. */
export function describeBucket({ name, prefix }: { readonly name: string; readonly prefix: string }): string {
  return `s3://${[name, prefix].filter(Boolean).join("/")}`;
}
