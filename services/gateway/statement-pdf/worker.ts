import { parentPort, workerData } from 'node:worker_threads';
import { statementPdf } from './statement-pdf.ts';

/** The thread that makes one PDF: `workerData` in, the file out. */
const file = await statementPdf(workerData);
parentPort?.postMessage(file);
