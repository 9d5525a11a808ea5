import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { z } from 'zod';
import { packageVersion } from '../platform/package-root.js';
import { ADMIN_TOKEN_SCHEME, GATEWAY_KEY_SCHEME, TAG_DESCRIPTIONS } from './admin-controller.js';
import { errorExample } from './api-errors.js';

type Schema = Record<string, unknown>;

interface Parameter {
  required?: boolean;
  description?: string;
  example?: unknown;
  schema?: { example?: unknown };
}

interface Operation {
  tags?: string[];
  parameters?: Parameter[];
  responses: Record<
    string,
    { content?: { 'application/json'?: { schema?: { $ref?: string }; example?: object } } }
  >;
}

/** Builds the OpenAPI document of all controllers from their decorators and schemas. */
export function apiDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setTitle('Postern admin API')
    .setDescription(
      'Manages teams, gateway keys and providers, and reads the request log and the audit log. Responses that show or ' +
        'change one team, key or provider carry an `ETag`. Send it back as `If-Match`, and a change is rejected with 409 ' +
        'if the object has changed since. A gateway key opens only `/self/v1`, which shows its own data.',
    )
    .setVersion(packageVersion())
    .setOpenAPIVersion('3.0.3')
    .addBearerAuth(
      { type: 'http', scheme: 'bearer', bearerFormat: 'opaque', description: 'The value of ADMIN_TOKEN.' },
      ADMIN_TOKEN_SCHEME,
    )
    .addBearerAuth(
      { type: 'http', scheme: 'bearer', bearerFormat: 'opaque', description: 'A gateway key, as for calls.' },
      GATEWAY_KEY_SCHEME,
    )
    .build();
  const document = SwaggerModule.createDocument(app, config, { standardSchemaConverter: converter() });
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item) as Operation[]);
  for (const { parameters = [], responses } of operations) {
    for (const parameter of parameters) if (!parameter.required) describeByExample(parameter);
    for (const [status, { content }] of Object.entries(responses)) {
      const example = errorExample(status);
      const json = content?.['application/json'];
      if (example !== undefined && json?.schema?.$ref?.endsWith('/Error')) json.example = example;
    }
  }
  const used = new Set(operations.flatMap(({ tags }) => tags ?? []));
  document.tags = [...used].map((name) => ({ name, description: TAG_DESCRIPTIONS.get(name) ?? '' }));
  return document;
}

/** The page of the documentation would send the example of an optional parameter with every request that is tried out. */
function describeByExample(parameter: Parameter): void {
  const { description, schema, example = schema?.example } = parameter;
  if (example === undefined) return;
  parameter.description = `${description} For example \`${typeof example === 'string' ? example : JSON.stringify(example)}\`.`;
  delete parameter.example;
  delete schema?.example;
}

/**
 * Converts zod schemas to JSON Schema. A schema with an `id` in its meta() becomes a component of that name; others are
 * inlined.
 */
function converter() {
  const named = new Map<string, string>();
  return (schema: unknown, { schemaType }: { schemaType: 'input' | 'output' }) => {
    if (!(schema instanceof z.ZodType)) return undefined;
    const options = { target: 'openapi-3.0', unrepresentable: 'any', io: schemaType } as const;
    const { definitions = {}, ...whole } = tidy(z.toJSONSchema(schema, options), schemaType === 'input');
    for (const [name, definition] of Object.entries(definitions as Schema)) {
      const text = JSON.stringify(definition);
      if ((named.get(name) ?? text) !== text) {
        throw new Error(`Two schemas have the id ${name}; give one of them another in its meta()`);
      }
      named.set(name, text);
    }
    return { schema: whole, components: definitions as Schema };
  };
}

/**
 * Removes noise: patterns next to a format or a number, and the bounds of safe integers. Responses may gain fields later,
 * so only requests forbid additional properties.
 */
function tidy(value: Schema, closed: boolean): Schema {
  const clean = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(clean);
    if (part === null || typeof part !== 'object') return part;
    const isNumber = 'type' in part && part.type === 'integer';
    const entries = Object.entries(part).filter(
      ([name, inner]) =>
        name !== '$schema' &&
        !(name === 'pattern' && ('format' in part || isNumber)) &&
        !(Math.abs(Number(inner)) === Number.MAX_SAFE_INTEGER && name.endsWith('imum')) &&
        !(name === 'additionalProperties' && inner === false && !closed),
    );
    return Object.fromEntries(entries.map(([name, inner]) => [name, clean(inner)]));
  };
  return clean(value) as Schema;
}
