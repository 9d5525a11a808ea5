import { code } from './markdown.js';

interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  nullable?: boolean;
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
  return [...endpoints, '## Schemas', ...schemas].join('\n\n');
}

function endpoint(name: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const parts = [`### ${code(name)}`, sentence([summary, description])];
  const given = parameters.map(
    ({ name, in: place, required, schema = {}, description }) =>
      `- ${code(name)} (${place}${required ? ', required' : ''}): ${sentence([typeOf(schema), description])}`,
  );
  if (given.length > 0) parts.push(given.join('\n'));
  const facts = [];
  const body = bodyType(requestBody);
  if (body !== null) facts.push(`Request body: ${body}.`);
  const [good] = Object.keys(responses).filter((status) => status.startsWith('2'));
  const type = bodyType(responses[good!]);
  facts.push(`Returns ${good}${type === null ? '' : ` with ${type}`}.`);
  const bad = Object.keys(responses).filter((status) => !status.startsWith('2'));
  facts.push(`Errors: ${bad.join(', ')}.`);
  return [...parts, facts.join(' ')].join('\n\n');
}

/** The types of a body, each with its media type unless that is JSON. */
function bodyType(body: Body | undefined): string | null {
  const types = Object.entries(body?.content ?? {}).map(([media, { schema = {} }]) =>
    media === 'application/json' ? typeOf(schema) : code(media),
  );
  return types.length === 0 ? null : types.join(' or ');
}

function fields({ properties = {}, required = [] }: Schema): string {
  if (Object.keys(properties).length === 0) return 'An empty object.';
  return Object.entries(properties)
    .map(([name, schema]) => {
      const optional = required.includes(name) ? '' : ', optional';
      const about = sentence([schema.description, fallback(schema)]);
      return `- ${code(name)} (${typeOf(schema)}${optional})${about === '' ? '' : `: ${about}`}`;
    })
    .join('\n');
}

const fallback = ({ default: value }: Schema) =>
  value === undefined ? undefined : `Default: ${code(JSON.stringify(value))}`;

function typeOf(schema: Schema): string {
  const { $ref, type, format, enum: values, items, nullable } = schema;
  const named = $ref?.split('/').at(-1);
  let text = type ?? 'any';
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
