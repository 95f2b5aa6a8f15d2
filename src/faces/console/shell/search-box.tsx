import { Kbd, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { useLocation, useSearch } from "wouter";
import { usePageLink, useUrlState } from "../state/url-state.ts";

export const SEARCH_ID = "search";

/** Searches the events for a text, from every page. */
export function SearchBox() {
  const [path, navigate] = useLocation();
  const search = useSearch();
  const link = usePageLink();
  const { change } = useUrlState();
  const query = path === "/explorer" ? (new URLSearchParams(search).get("q") ?? "") : "";
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const q = text.trim() === "" ? null : text.trim();
        if (path === "/explorer") change({ q, event: null });
        else navigate(link("/explorer", { q }));
      }}
    >
      <TextInput
        id={SEARCH_ID}
        size="xs"
        aria-label="Search events for a text"
        placeholder="Search events: address, path, payload ..."
        value={text}
        rightSection={<Kbd size="xs">/</Kbd>}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}
