/** Serves the console, and the headers that protect its pages. */

import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";

const YEAR_SECONDS = 31_536_000;

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Longwatch</title>
<h1>The console is not built</h1>
<p>Run <code>npm run build:console</code> in the folder of Longwatch, and then start the service again. <code>npm start</code> builds it too.</p>
<p>The <a href="/docs">API</a> and the command line work without it.</p>
</html>
`;

const html = { content: { "text/html": { schema: z.string() } } };

/** Answers with the console's page; null if the page cannot have that address. Used for addresses without a route. */
export type AnswerPage = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | null;

/**
 * Serves the console from `folder`, as Vite built it: the files, whose names contain their hashes, and the page at `/`.
 * A client that accepts HTML gets the page at every address whose first part no route begins with.
 */
export async function addConsole(app: FastifyInstance, folder: string): Promise<AnswerPage> {
  const index = path.join(folder, "index.html");
  const page = existsSync(index) ? readFileSync(index, "utf8") : null;
  const taken = new Set(["assets", "docs", "openapi.json"]);
  app.addHook("onRoute", ({ url }) => {
    taken.add(firstPart(url));
  });
  const answer = (reply: FastifyReply) => {
    const { body, headers } = dressPage(page ?? NOT_BUILT);
    return reply
      .code(page === null ? 503 : 200)
      .headers(headers)
      .send(body);
  };
  if (page !== null) await addFiles(app, folder);
  const schema = { tags: ["Service"], summary: "Open the console in a browser", response: { 200: html } };
  app.get("/", { config: { access: "public" }, schema }, async (_request, reply) => answer(reply));
  return (request, reply) => {
    const isAsked = request.method === "GET" || request.method === "HEAD";
    const isOfConsole = isAsked && !taken.has(firstPart(request.url)) && acceptsHtml(request);
    return isOfConsole ? answer(reply) : null;
  };
}

/** Adds a route for each file, so that no path can leave the folder. */
async function addFiles(app: FastifyInstance, folder: string): Promise<void> {
  const { default: serveFiles } = await import("@fastify/static");
  await app.register(serveFiles, { root: folder, serve: false, preCompressed: true, cacheControl: false });
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^\.|^index\.html$|\.(?:br|gz)$/.test(entry.name))
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, "/"));
  for (const file of files) {
    const control = file.startsWith("assets/") ? `public, max-age=${YEAR_SECONDS}, immutable` : "no-cache";
    app.get(`/${file}`, { config: { access: "public" }, schema: { hide: true } }, async (_request, reply) =>
      reply.header("cache-control", control).sendFile(file),
    );
  }
}

function firstPart(url: string): string {
  return /^\/([^/?]*)/.exec(url)?.[1] ?? "";
}

function acceptsHtml({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? "").includes("text/html");
}

/** Placeholder that `vite.config.ts` writes instead of a nonce. */
const NONCE_PLACE = "__CSP_NONCE__";

/**
 * Returns the content policy. Scripts come from this origin only, and no text becomes markup or a script. Styles that
 * the page writes itself carry the nonce of this answer.
 */
function contentPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types default",
  ].join("; ");
}

/** Returns the page with a new nonce, and its headers. */
function dressPage(html: string): {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
} {
  const nonce = randomBytes(16).toString("base64url");
  return {
    body: html.replaceAll(NONCE_PLACE, nonce),
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": contentPolicy(nonce),
      "cross-origin-opener-policy": "same-origin",
      "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
      vary: "accept",
    },
  };
}

/** Headers of every answer. Only the console's page may load anything; nothing may be framed or sniffed. */
export const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** A header of answers that went through TLS: for a year the browser asks this host through TLS only. */
export const TLS_HEADERS = { "strict-transport-security": "max-age=31536000" } as const;
