# The architecture diagram: a room may include the rooms it names and what those may include, nothing else.
# APART: what a program for this CPU alone does without: workgroups of many lanes, their printers and drivers, the simulator.
tang_room(base)                        # errors, Where, Result, hashing, number text
find_package(nlohmann_json REQUIRED)
tang_room(formats FOLDER formats USES base LIBS nlohmann_json::nlohmann_json)  # hostile-input readers
tang_room(expr     USES base            # scalar graphs: one op table, simplify, differentiate, evaluate
  APART facts)                         # what proofs are exported from
tang_room(target   USES base           # what chips offer, as data
  APART ampere)
tang_room(kernel   USES expr target    # kernel IR: tiles, statements, checker, expansions, simulator
  APART accesses barriers check contraction disjoint distribute early fragment lanes layout machine points products ragged role_* roles*
        row_terms rows selection simulate* teams traffic windows)
tang_room(ir       USES expr)          # extents, views, domains, monoids, nodes, Graph, builder
tang_room(schedule USES ir target)     # schedules as plain data; legality; the automatic rules
# The f64 oracle; the same walk with emulated formats. It walks every term of every graph that is verified.
tang_room(eval     USES ir LIBS Threads::Threads FLAGS -O3 -ffp-contract=off)
tang_room(rewrite  USES ir             # one file a rule, each with its law; the driver; the trace
  APART keyed_rows narrow_operands part_sums row_weights stored_operands turned_alike weighed_blocks)
tang_room(grad     USES rewrite        # reverse and forward mode: comprehension -> comprehensions; the stabilizing-max proof
  APART tangent)
tang_room(text     USES schedule grad) # the `.tang` notation and schedules: parse, print, diagnose
tang_room(plan     USES schedule)      # groups, roles, flush, placement, buffers, donation
tang_room(models   FOLDER models USES eval grad   # builders: clients of tang.hpp only
  APART decoder linear_attention optim scaled)
tang_room(lower    USES plan kernel    # plan -> kernel IR (point, fold, tile, recur, stage)
  APART few_rows tensor*)
tang_room(bound    USES ir kernel)      # linear program of the views: traffic bound, certificates, box tiles
tang_room(prove    USES grad bound)    # what the compiler relies on as Coq files: monoids, facts, fusion steps, eliminations, certificates
tang_room(emit     USES kernel        # dialects as thin printers
  APART cuda* glsl gpu* msl opencl wgsl)
tang_room(device   USES target LIBS Threads::Threads ${CMAKE_DL_LIBS}  # bytes, launches, clocks
  # What needs a library of its own is an object of its own: libtang.a is linked without it.
  APART apart cuda* memory_compiler opencl order tool vulkan webgpu ALONE memory_compiler webgpu)
option(TANG_TCC "link libtcc into the fuzzer where it is found (LGPL)" ON)
find_path(TCC_INCLUDE libtcc.h)
find_library(TCC_ARCHIVE NAMES libtcc.a)
if(TANG_TCC AND TCC_INCLUDE AND TCC_ARCHIVE)
  target_compile_definitions(device_apart PRIVATE TANG_TCC)
  target_include_directories(device_apart PRIVATE ${TCC_INCLUDE})
  target_link_libraries(device PUBLIC ${TCC_ARCHIVE})
endif()
if(APPLE) # Objective-C++ beside the room's C++
  enable_language(OBJCXX)
  target_sources(device_apart PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src/device/metal.mm)
  target_compile_options(device_apart PRIVATE $<$<COMPILE_LANGUAGE:OBJCXX>:-fobjc-arc>)
  target_link_libraries(device PUBLIC "-framework Metal" "-framework Foundation")
endif()
tang_room(run      USES rewrite lower emit device eval  # the pipeline as one readable list; Program; the error budget
  APART c_names cuda filling limits matrices standalone targets)
tang_room(verify   USES run        # poison, guard bands, kernel against oracle, blame by provenance
  APART record samples)
find_package(SQLite3 REQUIRED)
tang_room(tune     USES verify bound text LIBS SQLite::SQLite3 nlohmann_json::nlohmann_json)  # measured search, its cache, floor and estimate
tang_room(fuzz     USES verify text grad ALONE mutate*)  # random cases, their judge, shrinking, mutation of kernels
tang_room(cli      FOLDER cli USES tune models formats prove fuzz)  # the command line
