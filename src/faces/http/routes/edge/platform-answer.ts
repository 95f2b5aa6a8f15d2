import { STATUS_CODES } from "node:http";
import type { FastifyReply } from "fastify";
import type { Mistakes } from "#stages/archive/query/search.ts";
import { wordError } from "../../errors/error-form.ts";
import { PROBLEM_TYPE } from "../../errors/problem.ts";

const JSON_TYPE = "application/json; charset=utf-8";
const MAX_SHOWN_CHARS = 80;

/** Sends JSON regardless of `Accept`, as the platform does. A string is sent as it is. */
export function sendJson(reply: FastifyReply, status: number, body: string | object): FastifyReply {
  return reply
    .code(status)
    .type(JSON_TYPE)
    .send(typeof body === "string" ? body : JSON.stringify(body));
}

/** Sends an error in the form of its route: bare problem details, or the status alone (platform API spec 2.13). */
export function sendBareProblem(reply: FastifyReply, status: number, detail?: string): FastifyReply {
  const title = STATUS_CODES[status] ?? "Error";
  const problem = { type: "", title, status, ...(detail === undefined ? {} : { detail }) };
  const { type, body } = wordError(reply.routeOptions.config.errorForm ?? "bare", problem);
  return reply.code(status).type(type).send(JSON.stringify(body));
}

/** Sends problem details with all mistakes by field, or the status alone if that is the route's form. */
export function sendMistakes(reply: FastifyReply, errors: Mistakes): FastifyReply {
  if (reply.routeOptions.config.errorForm === "status-code") return sendBareProblem(reply, 400);
  const type = "https://tools.ietf.org/html/rfc9110#section-15.5.1";
  const title = "One or more validation errors occurred.";
  return reply
    .code(400)
    .type(PROBLEM_TYPE)
    .send(JSON.stringify({ type, title, status: 400, detail: summarise(errors), errors }));
}

/** The text that clients show if they show only one. */
function summarise(errors: Mistakes): string {
  const all = Object.values(errors).flat();
  const more = all.length > 1 ? ` (and ${all.length - 1} more)` : "";
  return `${all[0] ?? ""}${more}`;
}

/** Returns a filled status block (platform API spec 2.5). */
export function failureBlock(statusCode: number, errorKey: string, message: string) {
  return { statusCode, success: false, message, errorKey };
}

/** Shortens a client's value so that an error can quote it. */
export function shown(text: string): string {
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text;
}
