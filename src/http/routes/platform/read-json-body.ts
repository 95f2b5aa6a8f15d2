import { TextDecoder } from "node:util";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { sendBareProblem, sendMistakes } from "./platform-answer.ts";

const MEDIA_TYPES = /^(application\/json|text\/json|application\/[\w.-]+\+json)\s*(;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;
/** A body that is not JSON: the handler says so in the platform's words. */
const NOT_JSON = Symbol("not JSON");
/** A body in a charset that nobody here reads. */
const NOT_READABLE = Symbol("not readable");

/** Takes every body; which media types count is decided with the rest of what is wrong (platform API spec 4.7). */
export function addJsonParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, ({ headers }, body, done) => {
    done(null, parse(body as Buffer, headers["content-type"]));
  });
}

/** Bytes that are no text of their charset are not JSON: read with replacements they would ask for something else. */
function parse(body: Buffer, contentType = ""): unknown {
  const decoder = decoderOf(CHARSET.exec(contentType)?.[1] ?? "utf-8");
  if (decoder === null) return NOT_READABLE;
  try {
    return JSON.parse(decoder.decode(body)) as unknown;
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

/** The body sent as one of the three accepted media types; null when it is none, and then that was answered. */
export function readJsonBody(
  request: FastifyRequest,
  reply: FastifyReply,
): { readonly value: unknown } | null {
  const { body } = request;
  if (body === NOT_READABLE || !MEDIA_TYPES.test(request.headers["content-type"] ?? "")) {
    sendBareProblem(reply, 415);
    return null;
  }
  if (body !== NOT_JSON && body !== undefined) return { value: body };
  sendMistakes(reply, { $: ["The body is not valid JSON."] });
  return null;
}
