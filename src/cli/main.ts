import { run } from './program.js';

// `| head` closes standard output early, which is not an error. The command ends by itself and closes what it opened.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(1);
});

const args = process.argv.slice(2);
await run(args.length === 0 ? ['start'] : args);
