// The chance of `npm run test:stalls`.
const { createHash } = require('node:crypto');

/** A number from `from` up to `to`: always the same one for a seed and what it is drawn for. */
exports.drawn = (seed, what, from, to) => {
  const share = createHash('sha256').update(`${seed} ${what}`).digest().readUInt32BE() / 2 ** 32;
  return from + share * (to - from);
};
