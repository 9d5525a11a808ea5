// The command line as it ships.
import { runProgram } from '../config/program.js';

await runProgram('cli', 'cli/main.js');
