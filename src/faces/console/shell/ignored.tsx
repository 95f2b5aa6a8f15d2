import { CloseButton } from "@mantine/core";
import { useState } from "react";
import { Partial } from "../components/states.tsx";
import { readFilters } from "../state/filters.ts";
import { useSpan } from "../state/span.ts";
import { useUrlState } from "../state/url-state.ts";
import { useZones } from "../state/zones.ts";

/** Says what of the address was not understood, instead of showing something else in silence. */
export function Ignored() {
  const { params } = useUrlState();
  const span = useSpan();
  const { unknown } = useZones();
  const [closed, close] = useState("");
  const parts = [
    ...(span.ignored === null ? [] : [span.ignored]),
    ...(unknown === null ? [] : [`the zone ${unknown}`]),
    ...readFilters(params).ignored,
  ].map((part) => part.slice(0, 120));
  const text = parts.join(", ");
  if (text === "" || text === closed) return null;
  return (
    <Partial>
      The address has parts that this page does not understand. They are ignored: {text}.
      <CloseButton
        size="xs"
        aria-label="Close this note"
        onClick={() => close(text)}
        style={{ float: "right" }}
      />
    </Partial>
  );
}
