import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { shortenText } from "#lib/escape-text.ts";
import type { Log } from "#lib/log.ts";
import { createRateLimiter } from "#lib/rate-limiter.ts";
import { REPORTS_PATH } from "./page-headers.ts";

const MAX_BYTES = 16_384;
const MAX_REPORTS = 20;
const MAX_CHARS = 300;
/** Limit of the reports in the log. Every report is counted. */
const QUOTA = { quota: 10, windowMs: 10 * 60_000, maxKeys: 1 };

const text = z
  .unknown()
  .optional()
  .transform((given) => (typeof given === "string" ? shortenText(given, MAX_CHARS) : ""));
const Old = z.object({
  "csp-report": z.object({ "effective-directive": text, "blocked-uri": text, "source-file": text }),
});
const New = z.array(
  z.object({
    type: z.string(),
    body: z.object({ effectiveDirective: text, blockedURL: text, sourceFile: text }),
  }),
);

export interface CspReportsParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly onReport: () => void;
}

/** `POST /csp-reports` receives browsers' reports of blocked parts of the console. It needs no key. */
export function addCspReports(app: FastifyInstance, { log, clock, onReport }: CspReportsParts): void {
  const limiter = createRateLimiter(QUOTA);
  const schema = {
    tags: ["Service"],
    summary: "Report that a browser refused something that the console did",
    description: "Browsers call it by themselves (Content-Security-Policy: report-uri, report-to).",
    response: { 204: z.void() },
  };
  const config = { access: "public" } as const;
  void app.register(async (reports) => {
    const parse = reports.getDefaultJsonParser("error", "error");
    reports.addContentTypeParser(
      ["application/csp-report", "application/reports+json"],
      { parseAs: "string", bodyLimit: MAX_BYTES },
      (request, body, done) => void parse(request, body as string, done),
    );
    reports.post(REPORTS_PATH, { config, schema, bodyLimit: MAX_BYTES }, async ({ body }, reply) => {
      for (const report of readReports(body).slice(0, MAX_REPORTS)) {
        onReport();
        if (limiter.take("", clock()).isAllowed) log.warn(report, "browser refused something in the console");
      }
      return reply.code(204).send();
    });
  });
}

function readReports(body: unknown) {
  const old = Old.safeParse(body).data?.["csp-report"];
  if (old !== undefined)
    return [
      { directive: old["effective-directive"], blocked: old["blocked-uri"], source: old["source-file"] },
    ];
  return (New.safeParse(body).data ?? []).map(({ body: { effectiveDirective, blockedURL, sourceFile } }) => ({
    directive: effectiveDirective,
    blocked: blockedURL,
    source: sourceFile,
  }));
}
