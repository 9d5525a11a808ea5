import { z } from 'zod';
import { type ReceiverResponse, PolicyFailure } from './rule.js';

const MAX_TAGS = 8;

const schema = z.discriminatedUnion('allow', [
  z.strictObject({
    allow: z.literal(true),
    tags: z
      .record(z.string().regex(/^[\w.-]{1,64}$/), z.string().regex(/^[^,\p{Cc}\p{Cs}]{1,64}$/u))
      .refine((tags) => Object.keys(tags).length <= MAX_TAGS)
      .optional(),
  }),
  z.strictObject({
    allow: z.literal(false),
    code: z.string().regex(/^[a-z0-9_]{1,64}$/),
    message: z.string().min(1).max(512),
  }),
]);

/** What a policy has decided about a call. */
export type Decision = z.output<typeof schema>;

/** @throws PolicyFailure for anything else than a decision */
export function decisionOf(response: ReceiverResponse): Decision {
  let value: unknown;
  try {
    value = JSON.parse(response.toString());
  } catch (cause) {
    throw new PolicyFailure('invalid_decision', { cause });
  }
  const { success, data, error } = schema.safeParse(value);
  if (!success) throw new PolicyFailure('invalid_decision', { cause: error });
  return data;
}
