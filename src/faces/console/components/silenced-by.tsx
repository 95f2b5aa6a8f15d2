import { Link } from "wouter";
import type { Alert } from "../api/alert.ts";
import { usePageLink } from "../state/url-state.ts";
import { Ago, Moment } from "./ago.tsx";
import { Payload } from "./payload.tsx";

/** The silence that mutes an alert now: until when, by whom and why. */
export function SilencedBy({ silence }: { readonly silence: NonNullable<Alert["silence"]> }) {
  const link = usePageLink();
  const { id, expiresAt, createdBy, reason } = silence;
  return (
    <>
      <Link className="lw-underlined" href={link("/silences")} onClick={(event) => event.stopPropagation()}>
        silenced
      </Link>{" "}
      until{" "}
      <b>
        <Moment at={expiresAt} />
      </b>{" "}
      (<Ago at={expiresAt} />) by <Payload prose text={createdBy} />: <Payload prose text={reason} /> ·
      silence {id}
    </>
  );
}
