import type { FastifyInstance } from "fastify";

/**
 * Bodies of the native API: JSON, said to be that. One of no bytes is none, because many clients name a media type with
 * whatever they send.
 */
export function readNativeJson(app: FastifyInstance): void {
  app.removeContentTypeParser("text/plain");
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else void parse(request, body as string, done);
  });
}
