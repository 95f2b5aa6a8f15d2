import type { FastifyInstance } from "fastify";

/** Which methods an address takes; none for an address that no route has. */
export type AllowedMethods = (path: string) => readonly string[];

/** Learns every route that is added after this. Asked only of what no route answered, so it may look at them all. */
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

/** Any one segment stands for a parameter. */
function toPattern(url: string): RegExp {
  const segments = url
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${segments.join("/")}$`);
}
