import { z } from "zod";
import { asWritten } from "../contract/as-written.ts";
import { ContainerTemplateRequest, ContainerTemplateResponse } from "../contract/container-template.ts";
import { checkRequest } from "../transport/check-request.ts";
import type { EdgeCall } from "../transport/edge-call.ts";
import { PathText, toSegment } from "../transport/path-segment.ts";
import { readAnswer } from "../transport/read-answer.ts";
import type { EdgeTransport } from "../transport/transport.ts";

const Params = z.strictObject({ appId: PathText, request: asWritten(ContainerTemplateRequest) });

/**
 * Adds a container template to an application; platform API spec 4.4. Only a 429 is retried, because a second copy
 * would stay.
 */
export async function addContainer(
  transport: EdgeTransport,
  params: { appId: string; request: ContainerTemplateRequest },
  signal?: AbortSignal,
): Promise<ContainerTemplateResponse> {
  const { appId, request } = checkRequest("add-container", Params, params);
  const path = `/mc/apps/${toSegment(appId)}/containers`;
  const call: EdgeCall = { operation: "add-container", method: "POST", path, body: request, expects: "json" };
  return readAnswer(ContainerTemplateResponse, call, await transport.request(call, signal));
}
