import type { FastifyInstance } from "fastify";

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
