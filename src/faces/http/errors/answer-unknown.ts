import type { FastifyInstance } from "fastify";
import { Refusal } from "#operations/refusal.ts";
import type { AnswerPage } from "../page/add-console.ts";
import { sendProblem } from "./send-problem.ts";

/**
 * Answers a request that matches no route. The console's page is the answer if the console has that address. Otherwise
 * the answer is 404 for an unknown address or a missing file, 405 for a method that the address does not accept, and
 * the accepted methods for OPTIONS. Call this before the routes are added. The accepted methods are no secret: the
 * public document lists them.
 */
export function answerUnknown(app: FastifyInstance, answerPage: AnswerPage): void {
  const allowedAt = learnMethods(app);
  app.setNotFoundHandler((request, reply) => {
    const methods = allowedAt(request.url.split("?", 1)[0] ?? "");
    if (methods.length === 0)
      return answerPage(request, reply) ?? sendProblem(reply, request.id, { statusCode: 404 });
    const allow = methods.join(", ");
    if (request.method === "OPTIONS") return reply.code(204).header("allow", allow).send();
    // The route is there and its file is not: the console was built again while the service ran.
    if (methods.includes(request.method)) return sendProblem(reply, request.id, { statusCode: 404 });
    const detail = `This path does not accept ${request.method}. It accepts ${allow}.`;
    return sendProblem(reply, request.id, new Refusal(405, { detail, headers: { allow } }));
  });
}

/** Returns the methods of an address; an empty list if no route has the address. */
type AllowedMethods = (path: string) => readonly string[];

/** Collects every route that is added later. Called only for unmatched requests, so it may go through all routes. */
function learnMethods(app: FastifyInstance): AllowedMethods {
  const routes: { readonly methods: readonly string[]; readonly pattern: RegExp }[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    routes.push({ methods: [method].flat(), pattern: toPattern(url) });
  });
  return (path) => {
    const found = routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods);
    return found.length === 0 ? [] : [...new Set([...found, "OPTIONS"])].sort();
  };
}

/** A parameter matches any one segment. */
function toPattern(url: string): RegExp {
  const segments = url
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${segments.join("/")}$`);
}
