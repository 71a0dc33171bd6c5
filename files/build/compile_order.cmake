# Have the longest unit of the build started first. scaled_mm_c2x.cu takes 382 s by itself, all other
# units that 7.5 needs 35 minutes together (vLLM 0.28.0, nvcc 13.0, x86-64; measured); upstream lists
# it last of its library (0.27.1 to 0.33.0; source), so it starts late and then runs alone.
#
# Included into vLLM's project by -DCMAKE_PROJECT_vllm_extensions_INCLUDE=<this file>: nothing of the
# tree is changed, and in a vLLM without this unit nothing happens.
#
# ninja starts what is ready in the order of build.ninja, which is that of the sources of a target
# (measured, cmake 4.4.5 and ninja 1.13.2). It does not help to tell it how long a unit took the last
# time: since 1.12 it prefers what most steps wait for, each counted as one, and reads durations out
# of .ninja_log for its estimates alone (source; with a seeded log the order is the same, measured).

set(VLLM_G5G_LONGEST "/scaled_mm_c2x\\.cu$")

function(vllm_g5g_longest_first)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    set(longest ${sources})
    list(FILTER longest INCLUDE REGEX "${VLLM_G5G_LONGEST}")
    if(sources AND longest)
      list(REMOVE_ITEM sources ${longest})
      set_target_properties(${target} PROPERTIES SOURCES "${longest};${sources}")
      message(STATUS "${longest} is the first unit of ${target}")
    endif()
  endforeach()
endfunction()

# When the whole of vLLM's CMakeLists.txt is read, and its targets are there.
cmake_language(DEFER CALL vllm_g5g_longest_first)
