import { z } from "zod";
import { checkRequest } from "./check-request.ts";
import { VolumeInstancesDeletion } from "./contract/volume-instances.ts";
import type { EdgeCall } from "./edge-call.ts";
import { PathText, toSegment } from "./path-segment.ts";
import { readAnswer } from "./read-answer.ts";
import type { EdgeTransport } from "./transport.ts";

const Params = z.strictObject({ appId: PathText, volumeId: PathText });

/** Deletes all instances of a volume template; platform API spec 4.6. Rejected while one of them is attached. */
export async function deleteVolumeInstances(
  transport: EdgeTransport,
  params: { appId: string; volumeId: string },
  signal?: AbortSignal,
): Promise<VolumeInstancesDeletion> {
  const { appId, volumeId } = checkRequest("delete-volume-instances", Params, params);
  const path = `/mc/apps/${toSegment(appId)}/volumes/${toSegment(volumeId)}`;
  const call: EdgeCall = { operation: "delete-volume-instances", method: "DELETE", path, expects: "json" };
  return readAnswer(VolumeInstancesDeletion, call, await transport.request(call, signal));
}
