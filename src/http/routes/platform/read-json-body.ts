import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { sendBareProblem, sendMistakes } from "./platform-answer.ts";

const MEDIA_TYPES = /^(application\/json|text\/json|application\/[\w.-]+\+json)\s*(;|$)/i;
/** A body that is not JSON: the handler says so in the platform's words. */
const NOT_JSON = Symbol("not JSON");

/** Takes every body; which media types count is decided with the rest of what is wrong (platform API spec 4.7). */
export function addJsonParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => {
    done(null, parse(body.toString()));
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return NOT_JSON;
  }
}

/** The body sent as one of the three accepted media types; null when it is none, and then that was answered. */
export function readJsonBody(
  request: FastifyRequest,
  reply: FastifyReply,
): { readonly value: unknown } | null {
  if (!MEDIA_TYPES.test(request.headers["content-type"] ?? "")) {
    sendBareProblem(reply, 415);
    return null;
  }
  const { body } = request;
  if (body !== NOT_JSON && body !== undefined) return { value: body };
  sendMistakes(reply, { $: ["The body is not valid JSON."] });
  return null;
}
