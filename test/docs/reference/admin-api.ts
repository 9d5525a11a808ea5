import { code } from './markdown.js';

interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  nullable?: boolean;
  anyOf?: Schema[];
  /** One schema, which has a description or may be null. */
  allOf?: [Schema];
  enum?: (string | null)[];
  default?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
}

interface Body {
  content?: Record<string, { schema?: Schema }>;
}

interface Operation {
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: { name: string; in: string; description?: string; required?: boolean; schema?: Schema }[];
  requestBody?: Body;
  responses: Record<string, Body & { description?: string }>;
}

export interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** Every endpoint of the admin API by its tag, then every schema, from openapi.json. */
export function adminApiReference({ paths, components }: OpenApi): string {
  const byTag = new Map<string, string[]>();
  for (const [path, item] of Object.entries(paths))
    for (const [method, operation] of Object.entries(item)) {
      const tag = operation.tags?.[0] ?? 'Other';
      byTag.set(tag, [
        ...(byTag.get(tag) ?? []),
        endpoint(`${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`, operation),
      ]);
    }
  const endpoints = [...byTag].map(([tag, texts]) => `## ${tag}\n\n${texts.join('\n\n')}`);
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `### ${name}\n\n${fields(schema)}`,
  );
  if (schemas.length > 0) schemas.unshift('## Schemas');
  return [...endpoints, ...schemas].join('\n\n');
}

function endpoint(name: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const parts = [`### ${code(name)}`, sentence([summary, description])];
  const given = parameters.map(
    ({ name, in: place, required, schema = {}, description }) =>
      `- ${code(name)} (${place}${required ? ', required' : ''}): ${sentence([typeOf(schema), description])}`,
  );
  if (given.length > 0) parts.push(given.join('\n'));
  const [good] = Object.keys(responses).filter((status) => status.startsWith('2'));
  const bad = Object.keys(responses).filter((status) => !status.startsWith('2'));
  const type = bodyType(requestBody);
  const returned = bodyType(responses[good!]);
  if (type !== null) parts.push(`Request body: ${type}.`, ...inlineFields(requestBody));
  parts.push(
    `Returns ${good}${returned === null ? '' : ` with ${returned}`}.`,
    ...inlineFields(responses[good!]),
  );
  parts.push(`Errors: ${bad.join(', ')}.`);
  return parts.join('\n\n');
}

/** The fields of a body whose schema has no name of its own. */
function inlineFields(body: Body | undefined): string[] {
  const schema = body?.content?.['application/json']?.schema;
  const list = schema?.properties === undefined ? nested(schema?.items ?? {}, '') : fields(schema);
  return list === '' ? [] : [list];
}

/** The types of a body, each with its media type unless that is JSON. */
function bodyType(body: Body | undefined): string | null {
  const types = Object.entries(body?.content ?? {}).map(([media, { schema = {} }]) =>
    media === 'application/json' ? typeOf(schema) : code(media),
  );
  return types.length === 0 ? null : types.join(' or ');
}

function fields({ properties = {}, required = [] }: Schema, indent = ''): string {
  if (Object.keys(properties).length === 0) return 'An empty object.';
  return Object.entries(properties)
    .map(([name, schema]) => {
      const optional = required.includes(name) ? '' : ', optional';
      const about = sentence([schema.description, fallback(schema)]);
      const line = `${indent}- ${code(name)} (${typeOf(schema)}${optional})${about === '' ? '' : `: ${about}`}`;
      const below = nested(schema.properties === undefined ? (schema.items ?? {}) : schema, `${indent}  `);
      return below === '' ? line : `${line}\n${below}`;
    })
    .join('\n');
}

const nested = (schema: Schema, indent: string) =>
  Object.keys(schema.properties ?? {}).length === 0 ? '' : fields(schema, indent);

const fallback = ({ default: value }: Schema) =>
  value === undefined ? undefined : `Default: ${code(JSON.stringify(value))}`;

function typeOf(schema: Schema): string {
  const { $ref, type, format, enum: values, items, nullable, anyOf, allOf } = schema;
  const named = $ref?.split('/').at(-1);
  let text = [type ?? (anyOf ?? allOf)?.map(typeOf) ?? 'any'].flat().join(' or ');
  if (named !== undefined) text = `[${named}](#${named.toLowerCase()})`;
  else if (values !== undefined)
    text = values
      .filter((value) => value !== null)
      .map((value) => code(value))
      .join(' or ');
  else if (items !== undefined) text = `array of ${typeOf(items)}`;
  else if (format !== undefined) text = format;
  return nullable ? `${text} or null` : text;
}

function sentence(parts: (string | undefined)[]): string {
  const given = parts.filter((part) => part !== undefined && part !== '');
  return given
    .map((part) => (part!.endsWith('.') ? part! : `${part}.`))
    .join(' ')
    .replaceAll('<', '\\<');
}
