/** Reads and checks the bodies of requests. */

import { TextDecoder } from "node:util";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchemaCompiler } from "fastify";
import type { z } from "zod";
import { findMistakes, Refusal } from "#operations/refusal.ts";
import { isTooDeep, MAX_DEPTH } from "../limits/refuse.ts";
import { sendBareProblem, sendMistakes } from "./edge/platform.ts";

/**
 * Reads bodies of the native API: JSON with a JSON media type. An empty body counts as no body, because many clients
 * name a media type with every request.
 */
export function readNativeJson(app: FastifyInstance): void {
  app.removeContentTypeParser("text/plain");
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else void parse(request, body as string, done);
  });
}

/** Checks a part of the request by its zod schema. One refusal lists all mistakes. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (data: unknown) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    const mistakes = findMistakes(parsed.error, data, { isText: httpPart !== "body" });
    return { error: new Refusal(400, { slug: "invalid-request", mistakes }) };
  };

/** Platform API spec 4.7 lists `application/*+json`, and a published client sends it as it is written there. */
const MEDIA_TYPES = /^(application\/json|text\/json|application\/[\w.*-]+\+json)\s*(;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;
/** A body that is not JSON; the handler answers with the platform's error. */
const NOT_JSON = Symbol("not JSON");
/** A body that is nested too deep for a recursive reader. */
const TOO_DEEP = Symbol("too deep");
/** A body in a charset that the service cannot read. */
const NOT_READABLE = Symbol("not readable");

/** Accepts every body. The handler checks the media type together with the other rules (platform API spec 4.7). */
export function addJsonParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, ({ headers }, body, done) => {
    done(null, parse(body as Buffer, headers["content-type"]));
  });
}

/** Bytes that are invalid in their charset are not JSON, because replacement characters would change the request. */
function parse(body: Buffer, contentType = ""): unknown {
  const decoder = decoderOf(CHARSET.exec(contentType)?.[1] ?? "utf-8");
  if (decoder === null) return NOT_READABLE;
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    return isTooDeep(value) ? TOO_DEEP : value;
  } catch {
    return NOT_JSON;
  }
}

function decoderOf(charset: string): TextDecoder | null {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true });
  } catch {
    return null;
  }
}

/** Returns the body if it has one of the three accepted media types. Otherwise answers and returns null. */
export function readJsonBody(
  request: FastifyRequest,
  reply: FastifyReply,
): { readonly value: unknown } | null {
  const { body } = request;
  if (body === NOT_READABLE || !MEDIA_TYPES.test(request.headers["content-type"] ?? "")) {
    sendBareProblem(reply, 415);
    return null;
  }
  if (body !== NOT_JSON && body !== TOO_DEEP && body !== undefined) return { value: body };
  const mistake =
    body === TOO_DEEP
      ? `The body must not be nested more than ${MAX_DEPTH} deep.`
      : "The body is not valid JSON.";
  sendMistakes(reply, { $: [mistake] });
  return null;
}
