import { dollars, integer } from './column-domains.js';
import { BEGIN_OR_LATER, USAGE } from './column-kinds.js';
import type { Column } from './column.js';

/** The columns that say whether the cost of a call is known, and what it costs at least and at most if it is not. */
export const FINALITY_COLUMNS = {
  usage_final: {
    type: 'boolean',
    phases: USAGE,
    toDomain: (value: unknown) => (typeof value === 'boolean' ? value : null),
    description:
      'True if all usage of the call was read. False if the provider may have billed what was not read: the response was cut, ' +
      'timed out or interrupted, it ended without its usage, or tools were run that could not be counted.',
    nullMeans:
      'there was nothing to bill (the provider rejected the call, it was never sent, or the response was a stored one), or the row is older than this column.',
  },
  cost_low_usd: {
    type: 'numeric',
    phases: ['write'],
    toDomain: dollars,
    description:
      'Of a call whose usage is not final, the least that it cost in USD: what was reported so far, priced. Of a WebSocket, what its open responses add to `cost_usd` at least.',
    nullMeans: 'the usage is final, or the model has no price.',
    example: '0.000120000',
  },
  cost_high_usd: {
    type: 'numeric',
    phases: ['write'],
    toDomain: dollars,
    description:
      'Of a call whose usage is not final, the most that it cost in USD, at the highest rates of its price: the reported input, else `input_limit`; and the output that the request allows, else 131,072 tokens. Of a WebSocket, what its open responses add to `cost_usd` at most.',
    nullMeans:
      'the usage is final, the model has no price, or nothing bounds the cost: the provider may run tools, or it reported no input and `input_limit` is null.',
    example: '0.004200000',
  },
  output_limit: {
    type: 'bigint',
    phases: BEGIN_OR_LATER,
    toDomain: integer(Number.MAX_SAFE_INTEGER),
    description: 'The most output tokens that the request allows: its limit times its choices.',
    nullMeans: 'the request names none, or was forwarded before it was read.',
    example: 1_024,
  },
  input_limit: {
    type: 'bigint',
    phases: BEGIN_OR_LATER,
    toDomain: integer(Number.MAX_SAFE_INTEGER),
    description: 'The most input tokens that the request can have: a token for each byte of its body.',
    nullMeans:
      'input may come from elsewhere (URLs, IDs of files, stored conversations, tools that the provider runs), it has images or documents, the body is no JSON, or it was not read as a whole before the call was interrupted.',
    example: 4_096,
  },
} as const satisfies Record<string, Column<unknown>>;
