import type { FastifyInstance } from "fastify";

/** Returns the methods of an address; an empty list if no route has the address. */
export type AllowedMethods = (path: string) => readonly string[];

/** Collects every route that is added later. Called only for unmatched requests, so it may go through all routes. */
export function learnMethods(app: FastifyInstance): AllowedMethods {
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
