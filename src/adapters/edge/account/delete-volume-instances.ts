import { z } from "zod";
import { VolumeInstancesDeletion } from "../contract/volume-instances.ts";
import { checkRequest } from "../transport/check-request.ts";
import type { EdgeCall } from "../transport/edge-call.ts";
import { PathText, toSegment } from "../transport/path-segment.ts";
import { readAnswer } from "../transport/read-answer.ts";
import type { EdgeTransport } from "../transport/transport.ts";

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
