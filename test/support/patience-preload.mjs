// Makes the product in a process of a test as patient as in the test itself (patience.ts).
globalThis[Symbol.for('postern.patience')] = JSON.parse(process.env.POSTERN_TEST_PATIENCE);
