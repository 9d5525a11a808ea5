import { z } from 'zod';
import { asStored, documentOf, policyMembers, sinkMembers, storedWebhook } from './apply.schema.js';

const NAME = 'must be the name of a variable';

/** Something secret, which the file does not contain. */
const read = [
  z.strictObject({ env: z.string(NAME).min(1).meta({ description: 'Name of an environment variable.' }) }),
  z.strictObject({
    file: z.string().min(1).meta({ description: 'Path of a file, from the folder of this one.' }),
  }),
] as const;
const reference = z.union([...read, asStored]).meta({
  description: 'Where the command line reads the secret, or that it stays as it is stored.',
  examples: [{ env: 'OPENAI_API_KEY' }, { stored: true }],
});

const WEBHOOK_URL = 'Where events are sent; a reference, if the URL is secret, as those of Slack are.';
const POLICY_URL = 'Where policies are asked; a reference, if its path or query is secret.';
const SINK_URL = 'Where rows are sent; a reference, if its query is secret.';

/** JSON Schema of the file for `postern apply`, for editors. */
export function fileSchema(): object {
  const schema = documentOf(
    reference.nullable(),
    z.union([z.string(), ...read, storedWebhook]).meta({ description: WEBHOOK_URL }),
    z.strictObject({
      ...policyMembers,
      url: z.union([z.string(), reference]).meta({ description: POLICY_URL }),
      secret: reference,
    }),
    z.strictObject({
      ...sinkMembers,
      url: z.union([z.string(), reference]).meta({ description: SINK_URL }),
      secret: reference.nullable().default(null),
    }),
  );
  return {
    title: 'postern apply',
    ...z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }),
  };
}
