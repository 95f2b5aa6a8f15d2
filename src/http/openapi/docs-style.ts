/** The one style sheet of the docs page; its hash is all that the page's policy lets in. */
export const DOCS_STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5b6672; --line: #d9dee4; --back: #fff; --soft: #f5f7f9;
  --get: #0b63b6; --post: #1a7f37; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #9aa5b1; --line: #333b44; --back: #14181d;
  --soft: #1d2329; --get: #6cb4ff; --post: #5bd07f; --delete: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--back);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.frame { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 82rem; margin: 0 auto; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line);
  font-size: 13px; }
nav h2 { margin: 1rem 0 .25rem; font-size: 12px; text-transform: uppercase; letter-spacing: .05em; color: var(--dim); }
nav a { display: block; padding: .1rem 0 .1rem 1rem; text-indent: -1rem; color: inherit; text-decoration: none; overflow-wrap: anywhere; }
nav a:hover, nav a:focus { text-decoration: underline; }
main { padding: 1.5rem 2rem 4rem; }
h1 { margin: 0; font-size: 28px; }
h2.tag { margin: 2.5rem 0 .5rem; padding-bottom: .25rem; border-bottom: 2px solid var(--line); font-size: 21px; }
section.operation { margin: 1.25rem 0 2.25rem; scroll-margin-top: 1rem; }
h3 { display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap; margin: 0 0 .25rem; font-size: 16px; }
h3 code { font-size: 15px; overflow-wrap: anywhere; }
h4 { margin: .9rem 0 .3rem; font-size: 13px; color: var(--dim); }
.method { font: 700 12px/1 ui-monospace, monospace; padding: .25rem .45rem; border-radius: 4px; color: var(--back);
  background: var(--dim); }
.get { background: var(--get); } .post { background: var(--post); } .delete { background: var(--delete); }
nav .method { padding: .1rem .25rem; font-size: 9px; margin-right: .35rem; }
.scope { font-size: 12px; color: var(--dim); border: 1px solid var(--line); border-radius: 99px; padding: 0 .5rem; }
p { margin: .3rem 0; max-width: 46rem; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 13px; }
pre { margin: .3rem 0; padding: .7rem .9rem; overflow: auto; background: var(--soft); border: 1px solid var(--line);
  border-radius: 6px; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: 14px; }
th { text-align: left; font-size: 12px; font-weight: 600; color: var(--dim); }
td, th { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child, th:first-child { width: 28%; overflow-wrap: anywhere; }
td:nth-child(2), th:nth-child(2) { color: var(--dim); width: 30%; overflow-wrap: anywhere; }
.errors td:first-child { width: 4rem; } .errors td:nth-child(2) { width: auto; }
details { margin: .3rem 0; } summary { cursor: pointer; }
.needed { color: var(--delete); font-size: 12px; }
@media (max-width: 60rem) { .frame { display: block; } nav { position: static; height: auto; max-height: 11rem; border-right: 0;
  border-bottom: 1px solid var(--line); } main { padding: 1rem; } }
`;
