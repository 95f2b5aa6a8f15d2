import { Kbd } from "@mantine/core";
import { useLocation } from "wouter";
import { TextForm } from "../components/text-form.tsx";
import { usePageLink, useUrlState } from "../state/url-state.ts";

export const SEARCH_ID = "search";

/** Searches the events for a text, from every page. */
export function SearchBox() {
  const [path, navigate] = useLocation();
  const link = usePageLink();
  const { params, change } = useUrlState();
  const isHere = path === "/explorer";
  const search = (text: string) => {
    const q = text === "" ? null : text;
    if (isHere) change({ q });
    else navigate(link("/explorer", { q }));
  };
  return (
    <TextForm
      role="search"
      id={SEARCH_ID}
      aria-label="Search events for a text"
      placeholder="Search events: address, path, payload ..."
      rightSection={<Kbd size="xs">/</Kbd>}
      text={isHere ? (params.get("q") ?? "") : ""}
      onSubmit={search}
    />
  );
}
