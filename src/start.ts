// The gateway as it ships. `main.ts` is always run from its compiled files.
import { runProgram } from './config/program.js';

await runProgram('main', 'main.js');
