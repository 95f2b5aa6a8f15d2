import type pg from "pg";

/** Everything that a migration can make in the schema public, one line each. Columns have their number in the table. */
const CATALOG = `
  with relations as (select * from pg_class where relnamespace = 'public'::regnamespace), lines as (
    select format('relation %s %s', relname, array[relkind::text, relpersistence::text, relreplident::text, relam::text,
      relrowsecurity::text, relispartition::text, reloptions::text, relacl::text, pg_get_partkeydef(oid)]) as line
    from relations
    union all
    select format('column %s.%s %s', relname, attname,
      array[(row_number() over (partition by attrelid order by attnum))::text, format_type(atttypid, atttypmod), attnotnull::text,
      attcollation::regcollation::text, attidentity::text, attgenerated::text, attstorage::text, attcompression::text,
      attstattarget::text, attoptions::text, attacl::text, pg_get_expr(adbin, adrelid)])
    from pg_attribute a join relations r on r.oid = attrelid and relkind in ('r', 'p')
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attnum > 0 and not attisdropped
    union all
    select format('constraint %s %s %s %s', conrelid::regclass, conname, convalidated, pg_get_constraintdef(oid))
    from pg_constraint where connamespace = 'public'::regnamespace
    union all
    select format('index %s %s', indisvalid, pg_get_indexdef(indexrelid))
    from pg_index join relations r on r.oid = indexrelid
    union all
    select format('sequence %s of %s.%s', to_jsonb(s), refobjid::regclass, refobjsubid > 0)
    from pg_sequences s left join pg_depend on objid = sequencename::regclass and deptype in ('a', 'i')
    where schemaname = 'public'
    union all
    select format('function %s %s', proacl, pg_get_functiondef(oid))
    from pg_proc where pronamespace = 'public'::regnamespace
    union all
    select format('trigger %s %s', tgenabled, pg_get_triggerdef(oid)) from pg_trigger where not tgisinternal
    union all
    select format('type %s %s', typname, typtype) from pg_type where typnamespace = 'public'::regnamespace
    union all
    select format('comment %s', description) from pg_description
    where objoid in (select oid from relations union all select oid from pg_proc where pronamespace = 'public'::regnamespace)
    union all
    select format('extension %s', extname) from pg_extension
    union all
    select format('policy %s', polname) from pg_policy
    union all
    select format('rule %s', definition) from pg_rules where schemaname = 'public'
    union all
    select format('statistics %s', stxname) from pg_statistic_ext)
  select line from lines order by line collate "C"`;

export async function readCatalog(client: Pick<pg.ClientBase, "query">): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(CATALOG);
  return rows.map(({ line }) => line);
}
