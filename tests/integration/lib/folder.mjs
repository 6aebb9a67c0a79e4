import fs from 'node:fs/promises';

// Removes a folder in which processes worked. A job's process can outlive its agent for a moment, and git writes files
// meanwhile; rmdir then fails with ENOTEMPTY, and Node tries again (for up to 10 s in all).
export const removeFolder = (folder) => fs.rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
